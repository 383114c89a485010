"""What a worker tells its supervisor. What it does is shown by tests/fault."""

from structlog.testing import capture_logs

from walstream.config import Config
from walstream.config.run_options import Options
from walstream.errors import PermissionLacking, Repair
from walstream.pipeline.shutdown import Stop, Waker
from walstream.service import worker
from walstream.service.worker_order import WorkerRequest
from walstream.sources.report import RelayReport, StreamReport, WorkerReport
from walstream.telemetry.counts import ProcessCounts, SourceCounts


class Defective(worker.Worker):
    """One whose first report fails."""

    reports = 0

    def report(self) -> tuple[WorkerReport, ProcessCounts]:
        self.reports += 1
        if self.reports <= 2:
            raise RuntimeError("something changed meanwhile")
        return super().report()


def made(kind: type[worker.Worker] = worker.Worker) -> worker.Worker:
    return kind(Config(), "app", Options(), Stop(Waker(), 1.0))


def test_a_report_that_fails_is_not_the_last_and_is_said_once() -> None:
    found = made(Defective)
    with capture_logs() as said:
        assert [found.line(), found.line()] == [b"", b""]
    assert [one["event"] for one in said] == ["the report failed: a defect"]
    assert found.line().endswith(b"\n")


def test_the_last_answers_are_told() -> None:
    found = made()
    for number in range(20):
        found.backfill(WorkerRequest(number))
    assert list(found.answers) == [str(number) for number in range(4, 20)]
    assert {one.problem for one in found.answers.values()} == {
        "it is still starting: try again"
    }


def test_an_error_is_told_with_its_sql_and_what_is_left_to_do() -> None:
    found = made()
    repair = Repair(
        sql="GRANT x;", command="walstream reset {source}", then="restart it"
    )
    error = PermissionLacking("no right", hint="get it", repair=repair)
    found._note(error, final=True)  # noqa: SLF001
    told, _ = found.report()
    assert told.error is not None
    assert told.error.sql == "GRANT x;"
    assert told.error.repair == "walstream reset app"
    assert told.error.then == "restart it"


class Part:
    """One that cannot be asked once its positions are closed."""

    flowed = True
    closed = False
    phase = ""

    def report(self) -> RelayReport:
        if self.closed:
            raise RuntimeError("the state is not open")
        return RelayReport(ops=3)

    def counts(self) -> SourceCounts:
        return SourceCounts(poisoned=2)


def test_a_part_that_is_over_is_asked_no_more() -> None:
    found = made()
    part = Part()
    found._part = part  # type: ignore[assignment]  # noqa: SLF001
    found._end_part()  # noqa: SLF001
    part.closed = True
    report, counts = found.report()
    assert report.source == RelayReport(ops=3)
    assert counts.metrics.poisoned == 2


class Ending(Part):
    def report(self) -> StreamReport:  # type: ignore[override]
        return StreamReport(until="0/A")


def test_a_part_that_follows_ends_where_the_first_one_would() -> None:
    stop = Stop(Waker(), 1.0)
    found = worker.Worker(Config(), "app", Options(until_lsn="now"), stop)
    found._part = Ending()  # type: ignore[assignment]  # noqa: SLF001
    found._end_part()  # noqa: SLF001
    assert found._options.until_lsn == "0/A"  # noqa: SLF001
