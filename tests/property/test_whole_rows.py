"""Rows that are filled in: the row of the table at that op, or named as unknown."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from hypothesis import given
from hypothesis import strategies as st

from consumer.group.assigned_partition import Place
from consumer.op import Op
from consumer.state.row_fold import Changes, Columns, KeptValues
from consumer.state.row_keys import RowKeys, RowName
from consumer.state.value_store import Filling, ValueStore
from tests.support.loads.op import make
from walstream.op import Kind

TABLE: Final = "shop.docs"
IDS: Final = ("1", "2", "3")
LONG: Final = "long value %d " * 40
COLUMNS: Final = ("n", "body", "note")
Row = dict[str, str | None]


@dataclass
class Source:
    """A table as PostgreSQL stores it: which values lie outside of their row."""

    columns: list[str] = field(default_factory=lambda: ["id", *COLUMNS])
    rows: dict[str, Row] = field(default_factory=dict)
    outside: dict[str, set[str]] = field(default_factory=dict)
    serial: int = 0
    renewed: bool = False
    untold: bool = False  # that columns are new ones: no row came since

    def value(self, size: str) -> str | None:
        self.serial += 1
        text = {"long": LONG % ((self.serial,) * 40), "null": None}
        return text.get(size, f"v{self.serial}")

    def toast(self, key: str, written: Collection[str]) -> None:
        """Move long values out of a row that is wide; what was not written stays."""
        self.untold = False
        row = self.rows[key]
        self.outside[key] -= set(written)
        self.outside[key] |= {one for one in written if len(row[one] or "") > 100}

    def insert(self, key: str, sizes: dict[str, str]) -> Op:
        row = {"id": key, **{one: self.value(sizes[one]) for one in self.columns[1:]}}
        self.rows[key], self.outside[key] = row, set()
        self.toast(key, row.keys())
        return make(Kind.INSERT, TABLE, new=row, columns=self.columns)

    def update(
        self, key: str, written: dict[str, str], new_key: str | None = None
    ) -> list[Op]:
        """Update; a new key is one op (`split_key_updates = false`)."""
        row = self.rows.pop(key)
        after = new_key or key
        self.rows[after] = {**row, "id": after}
        self.outside[after] = self.outside.pop(key)
        for column, size in written.items():
            self.rows[after][column] = self.value(size)
        self.toast(after, written)
        sent = {
            name: text
            for name, text in self.rows[after].items()
            if name in written or name not in self.outside[after]
        }
        old = {"id": key} if new_key else None
        return [make(Kind.UPDATE, TABLE, old=old, new=sent, columns=self.columns)]

    def split(self, key: str, new_key: str) -> list[Op]:
        """Change a key as walstream sends it: the second half is whole."""
        gone = self.delete(key, keep=True)
        self.rows[new_key] = {**self.rows.pop(key), "id": new_key}
        self.outside[new_key] = self.outside.pop(key)
        row = self.rows[new_key]
        return [gone, make(Kind.INSERT, TABLE, new=row, columns=self.columns)]

    def delete(self, key: str, *, keep: bool = False) -> Op:
        if not keep:
            del self.rows[key], self.outside[key]
        return make(Kind.DELETE, TABLE, old={"id": key}, columns=self.columns)

    def truncate(self) -> Op:
        self.rows.clear()
        self.outside.clear()
        return make(Kind.TRUNCATE, TABLE, columns=self.columns)

    def renew(self, column: str) -> None:
        """DROP COLUMN and ADD it again, with values that no change tells."""
        self.renewed = self.untold = True
        self.columns.remove(column)
        self.columns.append(column)
        for key, row in self.rows.items():
            del row[column]
            row[column] = self.value("long")
            self.outside[key].add(column)


class MemoryStore(ValueStore):
    """A store whose table is a dictionary."""

    def __init__(self) -> None:
        super().__init__("g", Place("t", 0), RowKeys({TABLE: "id"}), "public")
        self.rows: dict[RowName, Columns] = {}
        self.shapes: dict[str, tuple[str, ...]] = {}
        self.room = 1  # rows whose values are read at once

    def _read(self, _: Any, rows: dict[RowName, bool], tables: set[str]) -> KeptValues:
        kept = KeptValues(
            shapes={one: self.shapes[one] for one in tables & {*self.shapes}}
        )
        room = self.room
        for name, with_values in rows.items():
            if name not in self.rows:
                continue
            is_read = with_values and room > 0
            room -= with_values
            kept.rows[name] = {
                column: text if is_read else None
                for column, text in self.rows[name].items()
            }
        return kept

    def keep(self, _: Any, filling: Filling, handled: int) -> None:
        made: Changes = filling.behind(handled)
        for name, columns in self.rows.items():
            if name.table in made.emptied:
                columns.clear()
            for column in made.dropped.get(name.table, ()):
                columns.pop(column, None)
        for name, column in made.removed:
            del self.rows[name][column]
        for name, column, text in made.put:
            self.rows.setdefault(name, {})[column] = text
        self.shapes.update(made.shapes)


sizes = st.sampled_from(("long", "short", "null"))
SIZED: Final = st.fixed_dictionaries(dict.fromkeys(COLUMNS, sizes))


def changes(draw: st.DrawFn, source: Source) -> Iterator[Op]:
    """Draw the ops of one change."""
    there = sorted(source.rows)
    free = sorted({*IDS} - source.rows.keys())
    kinds = ["insert"] * bool(free) + ["update", "update", "delete", "truncate"] * bool(
        there
    )
    kinds += ["move", "split"] * bool(there and free)
    # columns that are all new ones, in the former order, are not told: see 0109
    kinds += ["renew"] * bool(there and not source.untold)
    kind = draw(st.sampled_from(kinds))
    if kind == "insert":
        yield source.insert(draw(st.sampled_from(free)), draw(SIZED))
    elif kind == "delete":
        yield source.delete(draw(st.sampled_from(there)))
    elif kind == "truncate":
        yield source.truncate()
    elif kind == "renew":
        column = draw(st.sampled_from(COLUMNS))
        if column != source.columns[-1]:
            source.renew(column)
    elif kind == "split":
        where = draw(st.sampled_from(there)), draw(st.sampled_from(free))
        yield from source.split(*where)
    else:
        written = draw(st.dictionaries(st.sampled_from(COLUMNS), sizes))
        key = draw(st.sampled_from(there))
        new_key = draw(st.sampled_from(free)) if kind == "move" else None
        yield from source.update(key, written, new_key)


@given(st.data())
def test_a_filled_row_is_that_of_the_table(data: st.DataObject) -> None:
    source, store = Source(), MemoryStore()
    draw: Any = data.draw
    history: list[tuple[Op, Row | None]] = []
    for _ in range(draw(st.integers(1, 25))):
        for op in changes(draw, source):
            key = op.new["id"] if op.new else None
            history.append((op, dict(source.rows[key]) if key else None))
        if draw(st.integers(0, 3)):
            continue
        while history:
            end = next(
                (
                    max(number, 1)
                    for number, (op, _) in enumerate(history)
                    if op.kind is Kind.TRUNCATE
                ),
                len(history),
            )
            batch = history[:end]
            store.room = draw(st.integers(1, 3))
            filling = store.fill(None, [op for op, _ in batch])  # type: ignore[arg-type]
            assert filling.count
            handled = draw(st.integers(1, filling.count))
            for op, row in batch[:handled]:
                if row is not None:
                    known = dict(op.new.items())
                    assert known == {name: row[name] for name in known}
                    assert source.renewed or not op.new.absent
            store.keep(None, filling, handled)
            del history[:handled]
