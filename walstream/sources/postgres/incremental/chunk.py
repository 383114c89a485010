"""Rows of a table as one snapshot saw them, and which transactions it saw: pure.

The latter as pg_current_snapshot prints it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Self

from walstream.lsn import Lsn
from walstream.op import Table

_XIDS: Final = 1 << 32
_HALF: Final = 1 << 31


class Visibility:
    """Transactions below `xmin` are seen, from `xmax` on not, between by a list."""

    __slots__ = ("_running", "_xmax")

    def __init__(self, xmax: int, running: Iterable[int] = ()) -> None:
        self._xmax = xmax
        self._running = frozenset(running)

    @classmethod
    def of(cls, text: str) -> Self:
        """Read `xmin:xmax:xip,xip`."""
        _, xmax, running = text.split(":")
        return cls(int(xmax), map(int, running.split(",") if running else ()))

    def sees(self, xid: int) -> bool:
        """Return whether what a streamed transaction did is seen."""
        xmax = self._xmax
        full = xmax + (xid - xmax + _HALF) % _XIDS - _HALF
        return full < xmax and full not in self._running

    def sees_all_below(self, number: int) -> bool:
        """Return whether every transaction below this full number has ended.

        For a snapshot taken after some transaction above it ended: of what runs above
        all that ended, a snapshot lists nothing.
        """
        return number <= min(self._running, default=self._xmax)


Key = tuple[str, ...]
"""A row key, as the stream prints it, in the order of the table's columns."""


@dataclass(frozen=True, slots=True)
class KeyChunk:
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
        """Return after which key one goes on behind so many rows."""
        row = self.rows[count - 1]
        return tuple(str(row[index]) for index in self.order)

    @property
    def names(self) -> tuple[str, ...]:
        """Name the key's columns, as it is ordered, and what decides of that order.

        A key says where to go on only while all of it is as it was.
        """
        columns = tuple(self.table.columns[index] for index in self.order)
        return columns + self.ordered


def shape(table: Table) -> tuple[object, ...]:
    """Return all that decides how a row of a table is written."""
    columns = table.columns, table.type_oids, table.modifiers, table.facts
    return *columns, table.key
