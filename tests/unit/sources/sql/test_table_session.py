"""Looks at a table: once, or again after a while, where its columns are a schema."""

from pathlib import Path

import pytest

from tests.support.programs.sqlite_source import execute, file_of
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.shape import TableSpec
from walstream.sources.sql.table_session import TableSession
from walstream.telemetry import runtime


@pytest.mark.parametrize("renew_s", [None, 60.0])
def test_columns_that_come_are_seen_after_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, renew_s: float | None
) -> None:
    now = 1000.0
    monkeypatch.setattr(runtime, "monotonic", lambda: now)
    file = file_of(tmp_path)
    execute(file, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
    place = TableSession(Database(f"sqlite:///{file}"), TableSpec("t", "id"), renew_s)

    def look() -> tuple[str, ...]:
        with place.connect():
            return place.shape.names

    assert look() == ("id",)
    first = place.shape
    execute(file, "ALTER TABLE t ADD v TEXT")
    now += 59
    assert look() == ("id",)
    assert place.shape is first
    now += 2
    assert look() == (("id",) if renew_s is None else ("id", "v"))
    place.forget()
    assert look() == ("id", "v")
