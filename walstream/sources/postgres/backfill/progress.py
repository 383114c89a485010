"""Progress of a backfill, stored beside the position. Pure."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Self

from walstream.config.condition import either
from walstream.lsn import Lsn

_PART: Final = (
    "it was interrupted and the table has no key now, or another one: a part of it "
    "cannot be read again"
)
Key = tuple[str, ...]
"""Columns of a row key; none: the table has none."""


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Tasks on other machines that may still read a snapshot and send chunks."""

    session: str  # that holds the snapshot, as `Holder.session`
    chunks: int  # the highest number


@dataclass(frozen=True, slots=True)
class BackfillProgress:
    """The tables that are not finished, and how far the others are."""

    lsn: Lsn  # of the rows under the last snapshot
    tables: tuple[str, ...]  # not finished; `schema.table`
    replace: tuple[str, ...] = ()  # of them, those that readers empty first
    others: tuple[str, ...] = ()  # of them, those of which there is no stream
    rows: int = 0  # delivered, of finished tables
    failed: Mapping[str, str] = field(default_factory=dict)  # given up, and why
    elsewhere: Elsewhere | None = None  # to be fenced before the stream goes on
    # of what is not delivered whole, that of which readers may have rows under the last
    # snapshot, and the key of these; None: they can only be the stream's since then
    begun: Mapping[str, Key | None] = field(default_factory=dict)
    # of tables of which a part is read: the condition, as SQL
    where: Mapping[str, str] = field(default_factory=dict)

    def under(self, lsn: Lsn, keys: Mapping[str, Key]) -> Self:
        """Go on under another snapshot; tables of which no key is told are left out.

        Rows that readers have of one come again, be they of an earlier snapshot or of
        the stream up to this one: where no key tells them, they would be there twice.
        So readers empty a table first that has no key, or had another.
        """
        tables = tuple(table for table in self.tables if table in keys)
        doubled = (
            []
            if lsn == self.lsn
            else [table for table in tables if self._doubles(table, keys[table])]
        )
        # the other rows of a table of which a part is read would not come again
        parts = {table: _PART for table in doubled if table in self.where}
        emptied = dict.fromkeys([*self.replace, *doubled])
        found = replace(
            self,
            lsn=lsn,
            tables=tables,
            replace=tuple(table for table in emptied if table in keys),
        )
        return found.without_all((), failed=parts)

    def _doubles(self, table: str, key: Key) -> bool:
        if table not in self.begun:
            return False
        former = self.begun[table]
        return not key or (former is not None and former != key)

    def beginning(self, keys: Mapping[str, Key]) -> Self:
        """Note that rows of these tables may be sent from now on."""
        return replace(self, begun={**self.begun, **keys})

    def wanting(
        self,
        captured: Iterable[str],
        *,
        anew: bool,
        others: Iterable[str] = (),
        where: str = "",
    ) -> Self:
        """Add tables; `anew`: readers have to empty them first.

        `where` is the condition of the rows to read; "": all of them.
        """
        tables = [*captured, *others]
        conditions = dict(self.where)
        for name in tables:
            # of one that was given up, readers still lack what was asked for
            is_pending = name in self.tables or name in self.failed
            pending = self.where.get(name, "") if is_pending else None
            conditions[name] = either(pending, where)
        wanted = dict.fromkeys([*self.tables, *tables])
        emptied = dict.fromkeys([*self.replace, *(tables if anew else ())])
        failed = {name: why for name, why in self.failed.items() if name not in wanted}
        return replace(
            self,
            rows=self.rows if self.tables else 0,  # of a backfill that is over
            tables=tuple(wanted),
            replace=tuple(emptied),
            others=tuple(dict.fromkeys([*self.others, *others])),
            failed=failed,
            where={name: sql for name, sql in conditions.items() if sql},
        )

    def without(self, table: str, *, rows: int = 0, failed: str = "") -> Self:
        """Take a table out: its rows are delivered, or it is given up."""
        if failed:
            return self.without_all((), rows=rows, failed={table: failed})
        return self.without_all({table}, rows=rows)

    def without_all(
        self,
        done: Collection[str],
        *,
        rows: int = 0,
        failed: Mapping[str, str] = MappingProxyType({}),
    ) -> Self:
        """Take tables out: of these the rows are delivered, those are given up."""
        done = set(done)
        out = done | failed.keys()
        return replace(
            self,
            tables=tuple(name for name in self.tables if name not in out),
            replace=tuple(name for name in self.replace if name not in out),
            others=tuple(name for name in self.others if name not in out),
            rows=self.rows + rows,
            failed={**self.failed, **failed},
            begun={n: key for n, key in self.begun.items() if n not in done},
            where={n: sql for n, sql in self.where.items() if n not in done},
        )
