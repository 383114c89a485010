"""A polled source from both sides: what is stored, and what is there."""

from pathlib import Path

from tests.support.loads.poll_progress import keep
from tests.support.programs.sqlite_source import (
    SOURCE,
    configured,
    execute,
    file_of,
    source_of,
    state_of,
)
from walstream.config import Config
from walstream.state.lock import FolderLock
from walstream.status.positions.model import PolledStanding, StartOutcome
from walstream.status.positions.sql import standing

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY); INSERT INTO t VALUES (3), (7);"


def look(config: Config) -> PolledStanding:
    return standing(config, SOURCE, source_of(config))


def test_before_the_first_poll_there_is_only_the_table(tmp_path: Path) -> None:
    execute(file_of(tmp_path), TABLE)
    found = look(configured(tmp_path, {"t": {"start": "end"}}))
    assert found.verdict.outcome is StartOutcome.POLL
    assert "each table from its start" in found.verdict.text
    (table,) = found.tables
    assert (table.state.position, table.start) == (None, "end")
    assert (table.oldest_key, table.newest_key) == (3, 7)
    assert not (tmp_path / "state").exists()


def test_the_position_stands_beside_the_keys(tmp_path: Path) -> None:
    execute(file_of(tmp_path), TABLE)
    config = configured(tmp_path, {"t": {}})
    keep(state_of(config), "t", key=7, missing=[(4, 6)])
    found = look(config)
    assert found.verdict.text == "run would poll it from these positions"
    (table,) = found.tables
    assert (table.state.position, table.state.missing_keys) == (7, 3)
    assert not found.notes


def test_who_polls_it_now_is_named(tmp_path: Path) -> None:
    execute(file_of(tmp_path), TABLE)
    config = configured(tmp_path, {"t": {}})
    keep(state_of(config), "t", key=7)
    lock = FolderLock(state_of(config))
    lock.acquire()
    found = look(config)
    lock.release()
    assert found.verdict.outcome is StartOutcome.POLLING
    assert found.verdict.text.startswith("process ")


def test_what_run_would_stop_with_is_the_verdict(tmp_path: Path) -> None:
    config = configured(tmp_path, {"t": {}})
    keep(state_of(config), "t", key=7)
    found = look(config)
    assert found.verdict.outcome is StartOutcome.STOP
    assert found.verdict.problem is not None
    assert "SQLite file" in found.verdict.problem.what
    assert found.tables[0].state.position == 7
    execute(file_of(tmp_path), TABLE)
    (state_of(config) / "data.mdb").write_bytes(b"x" * 8192)
    damaged = look(config).verdict
    assert damaged.problem is not None
    assert damaged.problem.exit_code == 3
    repair = f"walstream positions reset {SOURCE} --adopt-slot"
    assert damaged.problem.repair.command == repair


def test_what_is_strange_is_noted(tmp_path: Path) -> None:
    execute(file_of(tmp_path), TABLE)
    config = configured(tmp_path, {"t": {}})
    keep(state_of(config), "t", key=8)
    keep(state_of(config), "old", key=1)
    codes = [(note.code, note.subject) for note in look(config).notes]
    assert codes == [
        ("position-beyond-table", "table t"),
        ("not-configured", "table old"),
    ]
