"""Rows of a table as one snapshot saw them, in the order of the key: a record."""

from dataclasses import dataclass, field

from walstream.lsn import Lsn
from walstream.op import Table
from walstream.sources.postgres.incremental.visibility import Visibility

Key = tuple[str, ...]
"""A row key, as the stream prints it, in the order of the table's columns."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some rows after a key."""

    table: Table
    rows: list[list[str | None]] = field(repr=False)
    order: tuple[int, ...]  # indexes into a row of the key's columns, as it is ordered
    seen: Visibility
    high: Lsn  # what is seen ends below it
    last: bool  # no row was left behind these
    size: int = 0  # bytes, about
    read_at: int = 0  # microseconds since 2000-01-01 UTC
    ordered: tuple[str, ...] = ()  # by which types, operators, collations

    def end(self, count: int) -> Key:
        """Give after which key one goes on behind so many rows."""
        row = self.rows[count - 1]
        return tuple(str(row[index]) for index in self.order)

    @property
    def names(self) -> tuple[str, ...]:
        """Name the key's columns, as it is ordered, and what decides of that order.

        A key says where to go on only while all of it is as it was.
        """
        columns = tuple(self.table.columns[index] for index in self.order)
        return columns + self.ordered
