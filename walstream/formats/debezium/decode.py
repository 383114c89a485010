"""An envelope -> the op that it is of, whoever wrote it: walstream or Debezium.

What does not come back: the nulls of a Delete without FULL, and the empty values of its
NOT NULL columns, look like the row's own. Values are as `connect_value` has them, and
records of Debezium name no commit record: see `position`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from walstream.errors import WalstreamError
from walstream.formats.debezium.connect_value import text_of
from walstream.formats.debezium.options import UNAVAILABLE
from walstream.formats.debezium.position import position
from walstream.formats.debezium.unavailable import Unavailable
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table
from walstream.row import OMITTED, Row, Value, any_absent

_KINDS: Final = {
    "c": Kind.INSERT,
    "r": Kind.INSERT,
    "u": Kind.UPDATE,
    "d": Kind.DELETE,
    "t": Kind.TRUNCATE,
}
_NO_HEADERS: Final[Mapping[str, bytes]] = {}
_TABLES_KNOWN: Final = 4096


class EnvelopeDecoder:
    """Reads the records of one connector."""

    def __init__(self, unavailable: str = UNAVAILABLE) -> None:
        """`unavailable`: its placeholder of an unchanged TOAST value."""
        self._unavailable = Unavailable(unavailable)

    def decode(
        self,
        value: bytes,
        key: bytes | None = None,
        headers: Mapping[str, bytes] = _NO_HEADERS,
    ) -> ReplicationOp:
        """Read one record; raise WalstreamError for anything else.

        Values that were not sent come back as OMITTED. The key tells which columns are
        the table's.
        """
        try:
            return self._decode(orjson.loads(value), key, headers)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            name = type(error).__name__
            raise WalstreamError(f"not a record of Debezium: {name}") from None

    def _decode(
        self, found: Any, key: bytes | None, headers: Mapping[str, bytes]
    ) -> ReplicationOp:
        told = found["schema"] if "payload" in found else {}
        envelope = found.get("payload", found)
        kind = _KINDS[envelope["op"]]
        source = envelope["source"]
        before, after = envelope["before"], envelope["after"]
        if after is None and before is None and kind is not Kind.TRUNCATE:
            raise ValueError("no row")
        columns = tuple(before if after is None else after) if kind in _ROWS else ()
        schemas = _field_schemas(told, "before" if after is None else "after")
        table = _table(source["schema"], source["table"], columns, _key_names(key))
        lsn, seq_id = position(envelope, headers)
        op = ReplicationOp(kind, table, lsn, seq_id)
        if kind is not Kind.INSERT and before is not None:
            op.old = self._row(columns, before, schemas)
        if kind is not Kind.DELETE and after is not None:
            op.new = self._row(columns, after, schemas)
        op.absent = any_absent(op.old) or any_absent(op.new)
        op.row_lsn = source.get("lsn") or 0
        op.xid = source.get("txId") or 0
        micros = source.get("ts_us") or source["ts_ms"] * 1000
        op.commit_time = micros - EPOCH_S * 1_000_000
        op.snapshot = str(source.get("snapshot") or "false").lower() != "false"
        return op

    def _row(
        self,
        columns: tuple[str, ...],
        fields: Mapping[str, Any],
        schemas: Mapping[str, Mapping[str, Any]],
    ) -> Row:
        if fields.keys() != set(columns):
            raise ValueError("rows of two shapes")
        row: list[Value] = []
        for name in columns:
            value = fields[name]
            if self._unavailable.is_one(value):
                row.append(OMITTED)
            else:
                row.append(text_of(value, schemas.get(name, {})))
        return row


_ROWS: Final = frozenset({Kind.INSERT, Kind.UPDATE, Kind.DELETE})


def _field_schemas(told: Mapping[str, Any], row: str) -> dict[str, Mapping[str, Any]]:
    """Return the schema of each column."""
    for field in told.get("fields", ()):
        if field["field"] == row:
            return {one["field"]: one for one in field["fields"]}
    return {}


def _key_names(key: bytes | None) -> tuple[str, ...]:
    """Return the names of a key's columns."""
    if key is None:
        return ()
    found = orjson.loads(key)
    if found.keys() == {"schema", "payload"}:
        found = found["payload"]
    return tuple(found)


@lru_cache(_TABLES_KNOWN)
def _table(
    schema: object, name: object, columns: tuple[str, ...], key: tuple[str, ...]
) -> Table:
    """Make one Table for all ops that look alike."""
    if not (isinstance(schema, str) and isinstance(name, str)):
        raise TypeError
    places = tuple(index for index, column in enumerate(columns) if column in key)
    return Table(schema, name, columns, places)
