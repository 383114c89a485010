"""A record of the format `op` in another encoding -> the op, with PostgreSQL's texts.

A document is what Connect's JsonConverter would write of it.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

import orjson

from walstream.errors import WalstreamError
from walstream.formats.debezium.connect_value import text_of
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, Row

COLUMNS: Final = "walstream.columns"
"""Parameter of a row's schema: the columns' names, where its fields have others."""
_FIELDS: Final = (
    *("table_name", "schema", "lsn", "seq_id", "kind", "old", "new"),
    *("snapshot", "absent", "texts", "partitions"),
)
_KINDS: Final = {kind.value: kind for kind in Kind}
_TABLES_KNOWN: Final = 4096
_OTHER_SHAPE: Final = (AttributeError, KeyError, TypeError, ValueError)


class OpDocument:
    """Reads documents of one schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Raise WalstreamError for a schema that is none of an op."""
        try:
            fields = {one["field"]: one for one in schema["fields"]}
            row = fields["new"]
            self._columns = [(one["field"], one) for one in row["fields"]]
            named = row.get("parameters", {}).get(COLUMNS)
            names = [name for name, _ in self._columns]
            self.has_units = "name" in row  # as the types of its columns have names
            self._names = tuple(names if named is None else orjson.loads(named))
        except _OTHER_SHAPE as error:
            raise _other(error) from None
        if len(self._names) != len(names):
            raise _other(ValueError())

    @staticmethod
    def is_of(schema: Mapping[str, Any]) -> bool:
        """Return whether it is the schema of an op."""
        fields = schema.get("fields") or ()
        return tuple(one.get("field") for one in fields) == _FIELDS

    def key_columns(self, fields: Sequence[str]) -> tuple[int, ...]:
        """Return the columns of a record's key, whose fields these are."""
        wanted = set(fields)
        return tuple(
            place for place, (name, _) in enumerate(self._columns) if name in wanted
        )

    def read(
        self, document: Mapping[str, Any], key: tuple[int, ...] = ()
    ) -> ReplicationOp:
        """Read one; raise WalstreamError for what is not of the schema.

        Values that were not sent come back as OMITTED.
        """
        try:
            return self._read(document, key)
        except _OTHER_SHAPE as error:
            raise _other(error) from None

    def _read(self, document: Mapping[str, Any], key: tuple[int, ...]) -> ReplicationOp:
        kind = _KINDS[document["kind"]]
        is_of_rows = kind is not Kind.TRUNCATE
        columns = self._names
        table = _table(document["schema"], document["table_name"], columns, key)
        lsn, seq_id = document["lsn"], document["seq_id"]
        if lsn < 0 or seq_id < 0:
            raise ValueError
        absent, texts = document["absent"], document["texts"]
        op = ReplicationOp(kind, table, lsn, seq_id)
        op.absent = absent is not None
        op.snapshot = document["snapshot"]
        op.partitions = document["partitions"] or 0
        if is_of_rows:
            op.old = self._row(document, "old", absent or {}, texts or {})
            op.new = self._row(document, "new", absent or {}, texts or {})
            if (op.new is None) != (kind is Kind.DELETE):
                raise ValueError
            if op.old is None and kind is Kind.DELETE:
                raise ValueError
        return op

    def _row(
        self,
        document: Mapping[str, Any],
        half: str,
        absent: Mapping[str, Any],
        texts: Mapping[str, Any],
    ) -> Row | None:
        fields = document[half]
        if fields is None:
            return None
        row: list[Any] = [text_of(fields[name], one) for name, one in self._columns]
        if names := absent.get(half):
            missing = set(names)
            for place, name in enumerate(self._names):
                if name in missing:
                    row[place] = OMITTED
        if beside := texts.get(half):
            for place, name in enumerate(self._names):
                row[place] = beside.get(name, row[place])
        return row


@lru_cache(_TABLES_KNOWN)
def _table(
    schema: str, name: str, columns: tuple[str, ...], key: tuple[int, ...]
) -> Table:
    """Make one Table for all ops that look alike."""
    return Table(schema, name, columns, key)


def _other(error: Exception) -> WalstreamError:
    return WalstreamError(f"not an op record: {type(error).__name__}")
