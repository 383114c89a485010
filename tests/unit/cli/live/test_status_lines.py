"""Status lines, of what workers report."""

from dataclasses import replace

from walstream.cli.live.status_lines import about, lag, status_lines
from walstream.pipeline.outage import Outage
from walstream.sources.report import (
    BackfillReport,
    ErrorReport,
    IncrementalReport,
    PollReport,
    PollRun,
    RelayReport,
    SinkReport,
    SourceReport,
    StreamReport,
    TableReport,
    WorkerReport,
)
from walstream.status.worker_state import WorkerState

HALF = BackfillReport(
    tables=1,
    chunks=2,
    chunks_done=1,
    rows=1234,
    bytes=5 << 20,
    rows_per_s=99.0,
    share=0.5,
    left_s=14.0,
)


def worker(
    source: SourceReport | None = None,
    state: str = "streaming",
    error: ErrorReport | None = None,
) -> WorkerState:
    return WorkerState(
        report=WorkerReport(state=state, source=source, error=error), pid=1
    )


def said(**workers: WorkerState) -> list[str]:
    return [line.plain for line in status_lines(workers, 10)]


def test_a_stream_is_its_state_rate_lag_and_total() -> None:
    report = StreamReport(delivered=31_631, delivered_per_s=475.2, lag_s=0.0012)
    assert said(app=worker(report)) == [
        "app  streaming · 475 changes/s · lag 1 ms · 31,631 sent"
    ]


def test_what_no_worker_knows_yet_is_left_out() -> None:
    assert said(app=worker(None, "starting")) == ["app  starting"]
    assert said(app=worker(StreamReport())) == ["app  streaming · 0 sent"]


def test_a_sink_that_is_waited_for_stands_first_with_its_cause() -> None:
    outage = Outage("Connect to ipv4#127.0.0.1:9099 failed: Connection refused")
    report = StreamReport(
        delivered=7, sinks={"kafka": SinkReport(waiting=True, outage=outage)}
    )
    assert said(app=worker(report)) == [
        "app  streaming · sink kafka waits: 127.0.0.1:9099: connection refused · 7 sent"
    ]


def test_a_source_that_waits_says_why_in_one_line() -> None:
    error = ErrorReport(error="server 127.0.0.1:5432: refused\nIs it running?")
    assert said(app=worker(None, "waiting", error)) == [
        "app  waiting · server 127.0.0.1:5432: refused"
    ]


def test_a_source_that_ended_shows_its_exit_code() -> None:
    assert said(app=WorkerState(exit_code=3)) == ["app  failed (3)"]


def test_a_backfill_counts_rows_against_an_estimate() -> None:
    (line,) = said(app=worker(StreamReport(backfill=HALF), "backfilling"))
    assert line == (
        "app  backfill ━━━━━─────  50%  1,234 of ~2,500 rows · 14 s left · 99/s"
    )


def test_a_backfill_before_its_first_chunk_shows_that_time_passes() -> None:
    begun = replace(HALF, chunks_done=0, rows=0, share=0.0, elapsed_s=12.0)
    (line,) = said(app=worker(StreamReport(backfill=begun), "backfilling"))
    assert line.endswith("─   0%  reading 1 table · 12 s")


def test_a_backfill_whose_first_chunk_was_of_an_empty_table_has_no_estimate() -> None:
    begun = replace(HALF, chunks_done=1, rows=0, share=0.0, left_s=None)
    (line,) = said(app=worker(StreamReport(backfill=begun), "backfilling"))
    assert line.endswith("─   0%  0 rows · 99/s")


def test_a_backfill_whose_chunks_are_put_back_says_why() -> None:
    held = replace(HALF, waits="no broker is reached\nmore")
    (line,) = said(app=worker(StreamReport(backfill=held), "backfilling"))
    assert line.endswith("1,234 rows · no broker is reached")


def test_a_table_that_is_read_beside_the_stream_has_a_line() -> None:
    beside = {
        "shop.a": IncrementalReport(rows=5, state="reading", error=""),
        "shop.b": IncrementalReport(rows=9, state="done", error=""),
    }
    lines = said(app=worker(StreamReport(beside=beside)))
    assert lines[1:] == ["app  backfilling shop.a · 5 rows"]


def test_a_poll_that_takes_long_has_a_line_and_a_short_one_has_none() -> None:
    tables = {
        "t": TableReport(rows=10, poll=PollRun(2.0, 5000)),
        "u": TableReport(rows=3, poll=PollRun(0.9, 4)),
    }
    assert said(legacy=worker(PollReport(tables=tables), "polling")) == [
        "legacy  polling · 13 rows",
        "legacy  polling t · 5,000 rows · 2,500 rows/s",
    ]


def test_a_relay_counts_records() -> None:
    report = RelayReport(delivered=9, delivered_per_s=2.0, lag_records=1200)
    assert said(chain=worker(report)) == [
        "chain  streaming · 2 records/s · lag 1,200 records · 9 sent"
    ]


def test_more_sources_than_lines_are_a_sum() -> None:
    report = StreamReport(delivered=10, delivered_per_s=2.0)
    many = {f"s{n}": worker(report) for n in range(5)} | {"x": WorkerState(exit_code=2)}
    (line,) = status_lines(many, 5)
    assert line.plain == "6 sources  5 run · 10 changes/s · 50 sent · 1 failed"
    assert len(status_lines(many, 6)) == 6


def test_a_stop_is_said_below() -> None:
    lines = status_lines({"app": worker(StreamReport())}, 10, stopping=True)
    assert "Ctrl-C again ends at once" in lines[-1].plain


def test_a_tables_name_drives_no_terminal() -> None:
    name = "\x1b]0;owned\x9b2J[red]"
    tables = {name: TableReport(poll=PollRun(30.0, 1))}
    lines = said(app=worker(PollReport(tables=tables), "polling"))
    assert r"\x1b]0;owned\x9b2J[red]" in lines[1]


def test_figures_are_rounded_as_they_are_read() -> None:
    assert [about(rows) for rows in (7, 98, 2468, 199_999)] == [
        "7",
        "98",
        "2,500",
        "200,000",
    ]
    assert [lag(seconds) for seconds in (0.0, 0.0012, 0.4, 90.0)] == [
        "0 ms",
        "1 ms",
        "0.4 s",
        "1.5 min",
    ]
