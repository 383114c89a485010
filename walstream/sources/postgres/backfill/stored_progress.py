"""A backfill's record as it is stored: a document for all, and one for each table.

So a table that is finished costs the same, however many there are.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from walstream.lsn import Lsn
from walstream.pipeline.ports import StateStore
from walstream.pipeline.state_document import (
    StateDocument,
    StateDocuments,
    StoredDocuments,
)
from walstream.sources.postgres.backfill.progress import (
    BackfillProgress,
    Elsewhere,
    Key,
)


@dataclass(frozen=True, slots=True)
class BackfillHead:
    """Facts for all tables."""

    lsn: Lsn
    rows: int
    elsewhere: Elsewhere | None


@dataclass(frozen=True, slots=True)
class BackfillTable:
    """One table of a backfill, as `BackfillProgress` has it."""

    place: int  # in the order of the tables
    left: bool
    replace: bool
    other: bool
    failed: str  # why it was given up, or ""
    begun: bool
    key: Key | None
    where: str = ""


HEAD: Final = StateDocument("backfill", BackfillHead)
TABLES: Final = StateDocuments("backfill/", BackfillTable)
"""By `schema.table`."""


@dataclass(frozen=True, slots=True)
class _Parts:
    """A record, taken apart."""

    head: BackfillHead
    tables: Mapping[str, BackfillTable]


def read(stored: StoredDocuments) -> BackfillProgress | None:
    """Return what is stored; None: there never was a backfill."""
    parts = _read_parts(stored)
    return _record_of(parts) if parts else None


def _read_parts(stored: StoredDocuments) -> _Parts | None:
    documents = stored.tree(HEAD.name)
    head = HEAD.decode(stored, documents.get(HEAD.name))
    return _Parts(head, TABLES.decode_all(stored, documents)) if head else None


def _record_of(parts: _Parts) -> BackfillProgress:
    tables = dict(sorted(parts.tables.items(), key=lambda item: item[1].place))
    return BackfillProgress(
        lsn=parts.head.lsn,
        tables=tuple(name for name, one in tables.items() if one.left),
        replace=tuple(name for name, one in tables.items() if one.replace),
        others=tuple(name for name, one in tables.items() if one.other),
        rows=parts.head.rows,
        failed={name: one.failed for name, one in tables.items() if one.failed},
        elsewhere=parts.head.elsewhere,
        begun={name: one.key for name, one in tables.items() if one.begun},
        where={name: one.where for name, one in tables.items() if one.where},
    )


def _parts_of(record: BackfillProgress) -> _Parts:
    left, replaced, others = map(set, (record.tables, record.replace, record.others))
    names = dict.fromkeys([*record.tables, *record.failed, *record.begun])
    return _Parts(
        BackfillHead(record.lsn, record.rows, record.elsewhere),
        {
            name: BackfillTable(
                place,
                left=name in left,
                replace=name in replaced,
                other=name in others,
                failed=record.failed.get(name, ""),
                begun=name in record.begun,
                key=record.begun.get(name),
                where=record.where.get(name, ""),
            )
            for place, name in enumerate(names)
        },
    )


class StoredProgress:
    """The record of one source, and its documents; of one thread."""

    def __init__(self, positions: StateStore) -> None:
        self._positions = positions
        parts = _read_parts(positions)
        self._record = _record_of(parts) if parts else None
        self._head = parts.head if parts else None
        self._tables = dict(parts.tables) if parts else {}
        self._stored = True  # is the record what is stored?
        # what is written of a table, and not taken out of the record yet
        self._rows = 0
        self._done: set[str] = set()
        self._failed: dict[str, str] = {}

    @property
    def record(self) -> BackfillProgress | None:
        """Return it as it is now; None: there never was a backfill."""
        if self._record is not None and (self._done or self._failed):
            self._record = self._record.without_all(
                self._done, rows=self._rows, failed=self._failed
            )
            self._rows, self._done, self._failed = 0, set(), {}
        return self._record

    def begin(self, record: BackfillProgress) -> dict[str, object]:
        """Set another record; return what the caller has to write."""
        self._set(record)
        parts = _parts_of(record)
        gone = dict.fromkeys(self._tables.keys() - parts.tables.keys())
        return HEAD.entry(parts.head) | _entries({**gone, **parts.tables})

    def store(self, record: BackfillProgress) -> None:
        """Set another record, and write what changed in it."""
        self._set(record)
        parts = _parts_of(record)
        changed: dict[str, BackfillTable | None] = {
            name: table
            for name, table in parts.tables.items()
            if self._tables.get(name) != table
        }
        gone = dict.fromkeys(self._tables.keys() - parts.tables.keys())
        self._write(parts.head, changed | gone)
        self._stored = True

    def _set(self, record: BackfillProgress) -> None:
        self._rows, self._done, self._failed = 0, set(), {}
        self._record, self._stored = record, False

    def done(self, table: str, rows: int) -> None:
        """Take a table out whose rows are delivered."""
        if self._take_out(table, rows, None):
            self._done.add(table)
        elif (record := self.record) is not None:
            self.store(record.without(table, rows=rows))

    def given_up(self, table: str, why: str) -> None:
        """Take a table out that cannot be read."""
        part = self._tables.get(table)
        if part is not None and part.left:
            part = replace(part, left=False, replace=False, other=False, failed=why)
            alone = self._take_out(table, 0, part)
        else:
            alone = False
        if alone:
            self._failed[table] = why
        elif (record := self.record) is not None:
            self.store(record.without(table, failed=why))

    def _take_out(self, table: str, rows: int, part: BackfillTable | None) -> bool:
        """Write this of a table alone; False: nothing is stored of it by itself."""
        head = self._head
        if head is None or table not in self._tables or not self._stored:
            return False
        self._write(replace(head, rows=head.rows + rows), {table: part})
        self._rows += rows
        return True

    def _write(
        self, head: BackfillHead, tables: Mapping[str, BackfillTable | None]
    ) -> None:
        changed = HEAD.entry(head) if head != self._head else {}
        self._positions.write(changed | _entries(tables))
        self._head = head
        for name, table in tables.items():
            if table is None:
                self._tables.pop(name, None)
            else:
                self._tables[name] = table


def _entries(tables: Mapping[str, BackfillTable | None]) -> dict[str, object]:
    entries: dict[str, object] = {}
    for name, table in tables.items():
        entries |= TABLES.of(name).entry(table)
    return entries
