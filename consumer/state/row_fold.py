"""Rows as far as they are known, op by op: values that an Update may leave out. Pure.

PostgreSQL sends no value that it stores outside of its row (TOAST) and that an UPDATE
did not touch. The last value of each such column came in an earlier op of the same row,
in the same partition: an Insert, a backfilled row too, has all of them.

- Insert: all that was known of the row is forgotten, and what it has is known.
- Update: what was not sent is what is known of the row, under its old key where that
  changed. What was sent is known instead.
- Delete, Truncate: what was known is forgotten.
- Another shape of the table: columns that went away, and all that may be new ones
  with an old name, are forgotten.
- The second change of the layout since values are kept, of those of one partition: rows
  that moved away may be back, and all of the table is forgotten.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from consumer.op import Op, layout_of
from consumer.state.row_keys import RowName, rows_of
from walstream.op import Kind

# A row below a quarter of a page is never toasted, and of a wider one no value that is
# not larger than the pointer which would replace it.
_WIDE: Final = 500  # characters of a row's values, by far fewer than 2 kB may print as
_LEAST: Final = 20  # bytes of a value
_NONE: Final[frozenset[str]] = frozenset()
_NOTHING: Final[Mapping[str, str]] = {}

Columns = dict[str, str | None]
"""KeptValues values by column; None: kept, and not read."""


@dataclass(slots=True)
class KeptValues:
    """Values that are kept of some rows, and the last shapes of their tables."""

    rows: dict[RowName, Columns] = field(default_factory=dict)
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    layouts: dict[str, int] = field(default_factory=dict)  # of the oldest values

    def copy(self) -> "KeptValues":
        rows = {name: dict(columns) for name, columns in self.rows.items()}
        return KeptValues(rows, dict(self.shapes), dict(self.layouts))


@dataclass(slots=True)
class Changes:
    """Changes of the store, in this order; all of them in the ops' transaction."""

    emptied: set[str] = field(default_factory=set)  # tables
    dropped: dict[str, set[str]] = field(default_factory=dict)  # columns by table
    doubted: dict[str, set[str]] = field(default_factory=dict)  # where a dropped one is
    shapes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    layouts: dict[str, int] = field(default_factory=dict)
    removed: list[tuple[RowName, str]] = field(default_factory=list)  # and columns
    put: list[tuple[RowName, str, str]] = field(default_factory=list)  # and values


class RowChange(NamedTuple):
    """An op, as far as it changes the values that are kept."""

    kind: Kind
    table: str  # schema.table
    columns: tuple[str, ...]
    before: RowName | None
    after: RowName | None
    lacking: frozenset[str]  # columns of the new row that were not sent
    sent: Mapping[str, str]  # values of the new row that a later op may leave out
    layout: int = 1  # by which its topic's keys are in their partitions


def change_of(op: Op, key: tuple[str, ...]) -> RowChange:
    """Read an op of a table with this key; raise WholeRowsError.

    What was filled in counts as not sent.
    """
    table = op.table
    before, after = rows_of(op, key)
    lacking, sent = _NONE, _NOTHING
    if after is not None:
        lacking = (op.new.absent | op.new.filled) - set(key)
        sent = _sent(op, key, lacking)
    layout = layout_of(op)
    return RowChange(
        op.kind, table.full_name, table.columns, before, after, lacking, sent, layout
    )


def _sent(op: Op, key: tuple[str, ...], lacking: frozenset[str]) -> Mapping[str, str]:
    texts = {
        name: text
        for name, text in op.new.items()
        if text is not None and name not in lacking
    }
    if not lacking and sum(map(len, texts.values())) < _WIDE:
        return _NOTHING
    return {
        name: text for name, text in texts.items() if name not in key and _is_long(text)
    }


def _is_long(text: str) -> bool:
    if len(text) > _LEAST:
        return True
    return not text.isascii() and len(text.encode()) > _LEAST


def wanted(changes: Iterable[RowChange]) -> dict[RowName, bool]:
    """Name the rows of which a fold has to know, in order; True: their values, too."""
    names: dict[RowName, bool] = {}
    for change in changes:
        for name in (change.before, change.after):
            if name is not None:
                names.setdefault(name, False)
        if change.before is not None and change.lacking:
            names[change.before] = True
    return names


class RowFold:
    """Fold of changes in their order, into the values that are kept behind them."""

    def __init__(self, kept: KeptValues, *, of_all: bool = False) -> None:
        """`kept` has the rows that are `wanted`, and the shapes of their tables.

        `of_all`: they are those of all partitions, between which rows may move.
        """
        self._of_all = of_all
        self._stored = kept.copy()
        self._now = kept.copy()
        self._emptied: set[str] = set()
        self._dropped: dict[str, set[str]] = {}
        self._doubted: dict[str, set[str]] = {}

    def take(self, change: RowChange) -> Mapping[str, str] | None:
        """Return the values that the change left out, as far as they are known.

        None: what it left out is kept, but was not read. Then nothing was taken in.
        """
        if change.kind is Kind.TRUNCATE:
            self._empty(change.table)
            self._now.layouts[change.table] = change.layout
            return _NOTHING
        self._see_layout(change.table, change.layout)
        rows, before, after = self._now.rows, change.before, change.after
        if after is not None:
            self._see_shape(change.table, change.columns)
        values: dict[str, str] = {}
        if before is not None and change.lacking:
            known = rows.get(before, {})
            for name in change.lacking & known.keys():
                text = known[name]
                if text is None:
                    return None
                values[name] = text
        if before is not None:
            rows[before] = {}
        if after is not None:
            rows[after] = {**values, **change.sent}
        return values

    def _empty(self, table: str) -> None:
        self._emptied.add(table)
        for kept in (self._stored, self._now):
            for name in kept.rows:
                if name.table == table:
                    kept.rows[name] = {}

    def _see_layout(self, table: str, layout: int) -> None:
        since = self._now.layouts.setdefault(table, layout)
        if layout > since + 1 and not self._of_all:
            self._empty(table)
            self._now.layouts[table] = layout

    def _see_shape(self, table: str, columns: tuple[str, ...]) -> None:
        before = self._now.shapes.get(table, columns)
        self._now.shapes[table] = columns
        if before == columns:
            return
        gone, doubted = renewed(before, columns)
        if not gone:
            return
        self._dropped.setdefault(table, set()).update(gone)
        self._doubted.setdefault(table, set()).update(doubted)
        for kept in (self._stored, self._now):
            for name, known in kept.rows.items():
                if name.table == table and (had := gone & known.keys()):
                    for column in had | (doubted & known.keys()):
                        del known[column]

    @property
    def changes(self) -> Changes:
        """What is kept otherwise than it is stored."""
        made = Changes(self._emptied, self._dropped, self._doubted)
        for table, columns in self._now.shapes.items():
            if self._stored.shapes.get(table) != columns:
                made.shapes[table] = columns
        for table, layout in self._now.layouts.items():
            if self._stored.layouts.get(table) != layout:
                made.layouts[table] = layout
        for name, now in self._now.rows.items():
            stored = self._stored.rows.get(name, {})
            made.removed += [(name, column) for column in stored.keys() - now.keys()]
            made.put += [
                (name, column, text)
                for column, text in now.items()
                if text is not None and stored.get(column) != text
            ]
        return made


class Renewed(NamedTuple):
    """Columns of a table's former shape whose values are those of today no more."""

    gone: set[str]  # their names went away, or may be those of new columns
    doubted: set[str]  # may be one of `gone` that got the name, in rows that had it


def renewed(before: Sequence[str], after: Sequence[str]) -> Renewed:
    """Compare a table's columns with those that it had.

    New columns stand behind all others. So where one stands ahead of an old name, and
    is not the new name of one that went away there, that and all behind it are new.
    A column that went away without a new name may have that of its neighbour: the one
    that replaces it is renamed as soon as the former is dropped.
    """
    stay = [name for name in before if name in after]
    same = at_before = at_after = 0
    doubted: set[str] = set()
    for name in stay:
        was, now = before.index(name), after.index(name)
        if not 0 <= now - at_after <= was - at_before:
            break
        if now - at_after < was - at_before:
            doubted.update(stay[max(0, same - 1) : same + 1])
        at_before, at_after, same = was + 1, now + 1, same + 1
    if at_before < len(before):  # behind it, a new name may be a new column's
        doubted.update(stay[max(0, same - 1) : same])
    gone = (set(before) - set(after)) | set(stay[same:])
    return Renewed(gone, doubted - gone)
