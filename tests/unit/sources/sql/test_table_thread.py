"""What a table's thread makes of errors: which pass, and which end the source."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest

from tests.support.programs.sqlite_source import execute, file_of
from walstream.errors import RETRIED, ConfigError, Transient
from walstream.sources.report import TableReport
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.shape import TableSpec
from walstream.sources.sql.progress import Trouble
from walstream.sources.sql.range_runner import Runner
from walstream.sources.sql.table_session import TableSession
from walstream.sources.sql.table_thread import TableThread
from walstream.telemetry import runtime


@dataclass
class Polls:
    """Stands for a poller, and for what runs its ranges: steps, one for each poll."""

    steps: list[Callable[[], None]]
    thread: list[TableThread] = field(default_factory=list)
    table: str = "t"
    held: bool = False
    cut_short: bool = False
    read_s: float = 0.0
    publish_s: float = 0.0
    store_s: float = 0.0
    told: TableReport = field(default_factory=TableReport)

    def poll(self) -> None:
        self.thread[0].poll_now()
        step = self.steps.pop(0)
        if not self.steps:
            self.thread[0].leave()
        step()

    def report_trouble(self, _trouble: Trouble) -> None:
        pass

    def leave(self) -> None:
        pass


def gone() -> None:
    raise ConfigError("no such column: v", hint="correct the configuration")


def well() -> None:
    pass


@dataclass
class Scene:
    """A table of a SQLite file, and a clock that a test turns."""

    file: Path
    place: TableSession
    now: float = 1000.0

    def run(self, step: Callable[[], None]) -> TableThread:
        """Poll once."""
        thread = self.thread([step])
        thread.run()
        return thread

    def thread(self, steps: list[Callable[[], None]]) -> TableThread:
        """Make one that polls as often as there are steps."""
        polls = Polls(steps)
        thread = TableThread(
            cast("Any", polls),
            cast("Runner", polls),
            self.place,
            lambda error: Trouble(str(error.args[0])),
            60.0,
        )
        polls.thread.append(thread)
        return thread

    def do(self, statement: str) -> None:
        execute(self.file, statement)

    def look(self) -> None:
        with self.place.connect():
            pass


@pytest.fixture
def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Scene:
    file = file_of(tmp_path)
    execute(file, "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
    made = Scene(
        file, TableSession(Database(f"sqlite:///{file}"), TableSpec("t", "id"))
    )
    monkeypatch.setattr(runtime, "monotonic", lambda: made.now)
    return made


def test_column_that_was_dropped_passes_where_the_table_can_be_polled_without(
    scene: Scene,
) -> None:
    scene.look()
    scene.do("ALTER TABLE t DROP COLUMN v")
    thread = scene.run(gone)
    assert isinstance(thread.trouble, Transient)
    assert thread.trouble.hint == RETRIED
    assert not thread.hopeless


def test_error_of_a_table_that_is_as_it_was_stays_what_it_is(scene: Scene) -> None:
    scene.look()
    thread = scene.run(gone)
    assert isinstance(thread.trouble, ConfigError)
    assert thread.hopeless


def test_table_that_never_was_polled_is_given_up_at_once(scene: Scene) -> None:
    scene.do("DROP TABLE t")
    thread = scene.run(scene.look)
    assert "there is no table" in str(thread.trouble)
    assert thread.hopeless


def test_table_that_was_polled_may_be_away_for_a_while(scene: Scene) -> None:
    seen: list[bool] = []

    def later(seconds: float) -> Callable[[], None]:
        def step() -> None:
            seen.append(thread.hopeless)
            scene.now += seconds
            scene.look()

        return step

    def drop() -> None:
        scene.do("DROP TABLE t")
        scene.place.forget()
        scene.look()

    def create() -> None:
        scene.do("CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT)")
        scene.look()

    steps = [well, drop, later(119), create, drop, later(119), later(2), later(0)]
    thread = scene.thread(steps)
    thread.run()
    assert seen == [False, False, False, True]
    assert isinstance(thread.trouble, ConfigError)
    assert thread.hopeless
