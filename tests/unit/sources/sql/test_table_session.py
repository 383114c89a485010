"""Looks at a table: once, or again after a while, where columns that come count."""

from pathlib import Path

import pytest

from tests.support.programs.sqlite_source import execute, file_of
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.shape import TableSpec
from walstream.sources.sql.table_session import TableSession
from walstream.telemetry import runtime


@pytest.mark.parametrize(
    ("fields", "renew_s", "seen"),
    [
        ((), None, ("id", "v")),
        ((), 60.0, ("id", "v")),
        (("id",), None, ("id",)),
    ],
)
def test_columns_that_come_are_seen_after_a_while(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fields: tuple[str, ...],
    renew_s: float | None,
    seen: tuple[str, ...],
) -> None:
    now = 1000.0
    monkeypatch.setattr(runtime, "monotonic", lambda: now)
    file = file_of(tmp_path)
    execute(file, "CREATE TABLE t (id INTEGER PRIMARY KEY)")
    wish = TableSpec("t", "id", fields)
    place = TableSession(Database(f"sqlite:///{file}"), wish, renew_s)

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
    assert look() == seen
    assert (place.shape is first) == bool(fields)
    former = place.shape
    assert place.forget() is former
    assert look() == seen
    assert place.shape is not former
