"""What a running instance goes by, and when it reads that again."""

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from tests.unit.service.test_config_changes import config
from walstream.config import Config
from walstream.config.run_options import Options
from walstream.errors import ConfigError
from walstream.pipeline.outage import Outage
from walstream.service.config_changes import ConfigReader
from walstream.service.fleet import Fleet
from walstream.service.reloader import Reloader
from walstream.sources.report import (
    ErrorReport,
    SinkReport,
    StreamReport,
    WorkerReport,
)


class Reader:
    """Gives a configuration, and notes what was asked of it."""

    def __init__(self, found: Config | None = None) -> None:
        self.found = found or config()
        self.asked: list[str] = []

    def whole(self) -> Config:
        self.asked.append("whole")
        return self.found

    def references(self) -> Config:
        self.asked.append("references")
        return self.found

    def keep(self) -> None:
        self.asked.append("keep")


class Rest:
    """What goes by it beside the fleet; an address may be refused."""

    def __init__(self, refusal: ConfigError | None = None) -> None:
        self.refusal = refusal
        self.taken: list[Config] = []

    def accept(self, _: Config) -> None:
        if self.refusal is not None:
            raise self.refusal

    def take(self, config: Config) -> None:
        self.taken.append(config)


def made(
    reader: ConfigReader | None, rest: Rest | None = None
) -> tuple[Reloader, Fleet]:
    fleet = Fleet(config(), Options())
    return Reloader(config(), reader, fleet, rest or Rest()), fleet


def changed(**update: object) -> Config:
    return config().model_copy(update=update)


def test_without_a_reader_nothing_is_read() -> None:
    reloader, _ = made(None)
    answer = reloader.reload()
    assert answer.problem == "it ends by itself and reads no configuration again"
    reloader.heed_refusals()


def test_what_somebody_asks_for_is_read_whole_kept_and_gone_by() -> None:
    reader, rest = Reader(changed(stats_interval=7.0)), Rest()
    reloader, _ = made(reader, rest)
    with capture_logs() as said:
        answer = reloader.reload()
    assert reader.asked == ["whole", "keep"]
    assert (answer.problem, answer.changes) == ("", ("stats_interval",))
    assert reloader.config.stats_interval == 7.0
    assert rest.taken == [reloader.config]
    assert [one["event"] for one in said] == ["the configuration was read"]


def test_what_is_refused_is_neither_kept_nor_gone_by() -> None:
    reader = Reader(changed(stats_interval=7.0))
    rest = Rest(ConfigError("http.listen: taken", hint="another"))
    reloader, _ = made(reader, rest)
    before = reloader.config
    with capture_logs() as said:
        answer = reloader.reload()
    assert "http.listen: taken" in answer.problem
    assert answer.exit_code == ConfigError.exit_code
    assert reader.asked == ["whole"]
    assert reloader.config is before
    assert rest.taken == []
    assert said[0]["hint"].startswith("correct it, then: walstream reload")


def test_another_state_folder_is_for_the_next_start() -> None:
    reloader, _ = made(Reader(changed(state="/elsewhere")))
    before = reloader.config.state
    with capture_logs() as said:
        reloader.reload()
    assert reloader.config.state == before
    assert "another state folder" in said[0]["event"]
    assert f"move {before} to /elsewhere" in said[0]["hint"]


def refuse_source(fleet: Fleet) -> None:
    """Let a source end as one whose password is refused, after it has streamed."""
    worker = fleet.workers[0]
    worker.history.error = ErrorReport(error="28P01", final=True, renewable=True)
    worker.restarts.exit_code = 4


def test_a_source_that_streamed_and_is_refused_is_tried_again() -> None:
    reader = Reader()
    reloader, fleet = made(reader)
    refuse_source(fleet)
    fleet.workers[0].restarts.renewal.flows()
    reloader.heed_refusals()
    assert reader.asked == ["references", "keep"]
    assert fleet.workers[0].exit_code is None
    reloader.heed_refusals()
    assert len(reader.asked) == 2  # nobody is refused now


def test_a_source_that_never_streamed_and_is_refused_has_ended() -> None:
    reader = Reader()
    reloader, fleet = made(reader)
    refuse_source(fleet)
    for _ in range(2):
        reloader.heed_refusals()
        assert fleet.workers[0].exit_code == 4
    assert len(reader.asked) == 2  # once


def test_a_sink_that_is_refused_has_passwords_read_now_and_then() -> None:
    reader = Reader()
    reloader, fleet = made(reader)
    refuses = SinkReport(outage=Outage("", refused=True))
    stream = StreamReport(sinks={"kafka": refuses})
    fleet.workers[0].history.report = WorkerReport(source=stream)
    for _ in range(3):
        reloader.heed_refusals()
    assert reader.asked == ["references", "keep"]


@pytest.mark.parametrize(
    ("ask", "said"),
    [(Reloader.reload, ["the configuration was read"]), (Reloader.heed_refusals, [])],
)
def test_a_reading_that_finds_nothing_new_is_logged_to_who_asked_alone(
    ask: Callable[[Reloader], object], said: list[str]
) -> None:
    reloader, fleet = made(Reader())
    refuse_source(fleet)
    with capture_logs() as logged:
        ask(reloader)
    assert [one["event"] for one in logged] == said
