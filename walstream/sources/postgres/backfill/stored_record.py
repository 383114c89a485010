"""A backfill's record as it is kept: a document for all, and one for each table.

So a table that is finished costs the same, however many there are.
"""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, Protocol

from walstream.pipeline.ports import Positions
from walstream.sources.postgres.backfill.record import DOCUMENT, BackfillRecord, Key

_UNDER: Final = f"{DOCUMENT}/"


class BackfillDocuments(Protocol):
    """Documents by name."""

    def tree(self, name: str) -> dict[str, Any]:
        """Read a document and all that are below it, as of one moment."""


def read(positions: BackfillDocuments) -> BackfillRecord | None:
    """Read what is kept; None: there never was a backfill."""
    return record_of(positions.tree(DOCUMENT))


def record_of(documents: Mapping[str, Any]) -> BackfillRecord | None:
    """Put a record together, among whatever other documents; an older form, too."""
    head = documents.get(DOCUMENT)
    if head is None or "tables" in head:  # all in one, by an older walstream
        return BackfillRecord.of(head)
    parts = {
        name.removeprefix(_UNDER): part
        for name, part in documents.items()
        if name.startswith(_UNDER)
    }
    parts = dict(sorted(parts.items(), key=lambda item: item[1]["place"]))
    return BackfillRecord.of(
        {
            **head,
            "tables": [name for name, part in parts.items() if part["left"]],
            "replace": [name for name, part in parts.items() if part["replace"]],
            "others": [name for name, part in parts.items() if part["other"]],
            "failed": {
                n: part["failed"] for n, part in parts.items() if part["failed"]
            },
            "begun": {n: part["key"] for n, part in parts.items() if part["begun"]},
        }
    )


def documents_of(record: BackfillRecord) -> dict[str, Any]:
    """Take a record apart."""
    left, replaced, others = map(set, (record.tables, record.replace, record.others))
    names = dict.fromkeys([*record.tables, *record.failed, *record.begun])
    return {
        DOCUMENT: _head(record),
        **{
            f"{_UNDER}{name}": {
                "place": place,
                "left": name in left,
                "replace": name in replaced,
                "other": name in others,
                "failed": record.failed.get(name, ""),
                "begun": name in record.begun,
                "key": _listed(record.begun.get(name)),
            }
            for place, name in enumerate(names)
        },
    }


def _head(record: BackfillRecord) -> dict[str, Any]:
    elsewhere = record.elsewhere
    return {
        "lsn": record.lsn,
        "rows": record.rows,
        "elsewhere": asdict(elsewhere) if elsewhere else None,
    }


def _listed(key: Key | None) -> list[str] | None:
    return None if key is None else list(key)


class Book:
    """The record of one source, and its documents; of one thread."""

    def __init__(self, positions: Positions) -> None:
        self._positions = positions
        self._kept = positions.tree(DOCUMENT)
        self._record = record_of(self._kept)
        self._stored = True  # is the record what is kept?
        # what is written of a table, and not taken out of the record yet
        self._rows = 0
        self._done: set[str] = set()
        self._failed: dict[str, str] = {}

    @property
    def record(self) -> BackfillRecord | None:
        """Return it as it is now; None: there never was a backfill."""
        if self._record is not None and (self._done or self._failed):
            self._record = self._record.without_all(
                self._done, rows=self._rows, failed=self._failed
            )
            self._rows, self._done, self._failed = 0, set(), {}
        return self._record

    def begin(self, record: BackfillRecord) -> dict[str, Any]:
        """Set another record; return what the caller has to write."""
        self._rows, self._done, self._failed = 0, set(), {}
        self._record, self._stored = record, False
        documents = documents_of(record)
        return {**dict.fromkeys(self._kept.keys() - documents.keys()), **documents}

    def store(self, record: BackfillRecord) -> None:
        """Set another record, and write what changed in it."""
        changed = {
            name: document
            for name, document in self.begin(record).items()
            if document is None or self._kept.get(name) != document
        }
        self._positions.write(changed)
        self._keep(changed)
        self._stored = True

    def done(self, table: str, rows: int) -> None:
        """Take a table out whose rows are delivered."""
        if self._take_out(table, rows, None):
            self._done.add(table)
        elif (record := self.record) is not None:
            self.store(record.without(table, rows=rows))

    def given_up(self, table: str, why: str) -> None:
        """Take a table out that cannot be read."""
        part = self._kept.get(_UNDER + table, {})
        failed = {**part, "left": False, "replace": False, "other": False}
        if part.get("left") and self._take_out(table, 0, {**failed, "failed": why}):
            self._failed[table] = why
        elif (record := self.record) is not None:
            self.store(record.without(table, failed=why))

    def _take_out(self, table: str, rows: int, part: Mapping[str, Any] | None) -> bool:
        """Write this of a table alone; False: nothing is kept of it by itself."""
        name = _UNDER + table
        head = self._kept.get(DOCUMENT)
        if head is None or name not in self._kept or not self._stored:
            return False
        changed = {DOCUMENT: {**head, "rows": head["rows"] + rows}, name: part}
        self._positions.write(changed)
        self._keep(changed)
        self._rows += rows
        return True

    def _keep(self, changed: Mapping[str, Any]) -> None:
        for name, document in changed.items():
            if document is None:
                self._kept.pop(name, None)
            else:
                self._kept[name] = document
