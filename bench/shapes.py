"""What is written: the tables of backlogs, their transactions, what they must become.

Every change that leaves a row carries its number in column `a`, which only grows: so
order shows in what a topic holds. All values follow from `id` and that number.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Final

TABLE: Final = "backlog"
_COLUMNS: Final = (
    "id bigint PRIMARY KEY, a int, note text, at timestamptz, amount numeric, name text"
)
_NOTE: Final = "'some text of about forty characters, yes'"
_KEPT: Final = 100_000  # rows that updates meet, at most
_BEFORE: Final = 1000  # rows that a mixed load deletes before it comes to its own
_TABLES: Final = 1000


def values(key: str, number: str, note: str = _NOTE) -> str:
    """Give the SQL of a row; no fraction of a second ends with a zero."""
    return (
        f"{key}, ({number})::int, {note},"
        " timestamptz '2026-01-01 00:00:00.123457+00'"
        f" + ({number}) * interval '1 second',"
        f" (({number}) % 100) * 1.25, 'name ' || (({number}) % 100)"
    )


def made(low: str, high: str, note: str = _NOTE) -> str:
    """Give the SQL of rows whose number is their key."""
    return f"SELECT {values('i', 'i', note)} FROM generate_series({low}, {high}) i"


@dataclass(frozen=True)
class Shape:
    """A backlog of some number of changes."""

    name: str
    changes: int
    per_transaction: int
    write: str  # a DO block
    expected: list[str]  # queries: the kind, and the texts, of every change
    tables: list[str] = field(default_factory=lambda: [TABLE])
    setup: list[str] = field(default_factory=list)  # before the slots
    folds: bool = False  # deletes rows, too: the keys that are left are compared

    @property
    def create(self) -> list[str]:
        return [f"CREATE TABLE {name} ({_COLUMNS})" for name in self.tables]


def _inserts(name: str, rows: int, size: int, note: str = _NOTE) -> Shape:
    size = min(size, rows)
    rows -= rows % size
    rows_made = made(f"t::bigint * {size}", f"(t + 1)::bigint * {size} - 1", note)
    write = f"""
DO $$ BEGIN FOR t IN 0..{rows // size - 1} LOOP
  INSERT INTO {TABLE} {rows_made};
  COMMIT;
END LOOP; END $$"""
    return Shape(name, rows, size, write, [f"SELECT 'I', * FROM {TABLE}"])


def _a(rows: int) -> Shape:
    return _inserts("A", rows, 100)


def _b(rows: int) -> Shape:
    return _inserts("B", rows, 1)


def _huge(rows: int) -> Shape:
    return _inserts("huge", rows, rows)


def _wide(rows: int) -> Shape:
    parts = " || ".join(f"md5((i * {factor})::text)" for factor in range(1, 26))
    return _inserts("wide", rows, 100, f"repeat({parts}, 2)")


def _update_full(rows: int) -> Shape:
    size = 100
    rows = max(rows - rows % size, size)
    kept = min(_KEPT, rows)
    number = f"({kept} + u)"
    write = f"""
DO $$ BEGIN FOR t IN 0..{rows // size - 1} LOOP
  FOR u IN t * {size}..(t + 1) * {size} - 1 LOOP
    UPDATE {TABLE} SET (id, a, note, at, amount, name)
      = ROW({values(f"u % {kept}", number)}) WHERE id = u % {kept};
  END LOOP;
  COMMIT;
END LOOP; END $$"""
    old, new = values(f"u % {kept}", "u"), values(f"u % {kept}", number)
    expected = f"SELECT 'U', {old}, {new} FROM generate_series(0, {rows - 1}) u"
    return Shape(
        "update-full",
        rows,
        size,
        write,
        [expected],
        setup=[
            f"ALTER TABLE {TABLE} REPLICA IDENTITY FULL",
            f"INSERT INTO {TABLE} {made('0', str(kept - 1))}",
        ],
    )


def _mixed(rows: int) -> Shape:
    """Insert one row, update one that is a while old, delete one that is older."""
    size = 33
    steps = max(rows // (3 * size), 1) * size
    half = _BEFORE // 2
    inserted, updated = values("i", "3 * i"), values(f"i - {half}", "3 * i + 1")
    write = f"""
DO $$ BEGIN FOR t IN 0..{steps // size - 1} LOOP
  FOR i IN t * {size}..(t + 1) * {size} - 1 LOOP
    INSERT INTO {TABLE} SELECT {inserted};
    UPDATE {TABLE} SET (id, a, note, at, amount, name) = ROW({updated})
      WHERE id = i - {half};
    DELETE FROM {TABLE} WHERE id = i - {_BEFORE};
  END LOOP;
  COMMIT;
END LOOP; END $$"""
    series = f"FROM generate_series(0, {steps - 1}) i"
    return Shape(
        "mixed",
        3 * steps,
        3 * size,
        write,
        [
            f"SELECT 'I', {inserted} {series}",
            f"SELECT 'U', {updated} {series}",
            f"SELECT 'D', i - {_BEFORE} {series}",
        ],
        setup=[f"INSERT INTO {TABLE} {made(str(-_BEFORE), '-1')}"],
        folds=True,
    )


def _many_tables(rows: int) -> Shape:
    size = 100
    rows = max(rows - rows % size, size)
    tables = [f"{TABLE}_{number}" for number in range(_TABLES)]
    row = values("$1", "$1").replace("'", "''")
    write = f"""
DO $$ BEGIN FOR t IN 0..{rows // size - 1} LOOP
  FOR i IN t * {size}..(t + 1) * {size} - 1 LOOP
    EXECUTE 'INSERT INTO {TABLE}_' || i % {_TABLES} || ' SELECT {row}' USING i;
  END LOOP;
  COMMIT;
END LOOP; END $$"""
    expected = [f"SELECT 'I', * FROM {name}" for name in tables]
    return Shape("tables", rows, size, write, expected, tables)


SHAPES: Final[dict[str, Callable[[int], Shape]]] = {
    "A": _a,
    "B": _b,
    "debezium": partial(_inserts, "debezium", size=100),
    "formats": partial(_inserts, "formats", size=100),
    "network": partial(_inserts, "network", size=100),
    "delivery": partial(_inserts, "delivery", size=100),
    "wide": _wide,
    "update-full": _update_full,
    "mixed": _mixed,
    "tables": _many_tables,
    "layouts": _many_tables,
    "huge": _huge,
}
