"""An envelope -> the op that it is of, whoever wrote it: walstream or Debezium.

What does not come back: the nulls of a Delete without FULL, and the empty values of its
NOT NULL columns, look like the row's own. Values are as `connect_value` has them, and
records of Debezium name no commit record: see `position`.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

import orjson

from walstream.errors import WalstreamError
from walstream.formats.debezium.connect_value import text_of
from walstream.formats.debezium.exact_numbers import exact, may_be_rounded
from walstream.formats.debezium.options import CONNECTOR, UNAVAILABLE
from walstream.formats.debezium.position import position
from walstream.formats.debezium.unavailable import Unavailable
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table
from walstream.row import OMITTED, Row, Value, any_absent

Schemas = Mapping[str, Mapping[str, Any]]
"""Connect's schemas of a row's columns, by name."""

_KINDS: Final = {
    "c": Kind.INSERT,
    "r": Kind.INSERT,
    "u": Kind.UPDATE,
    "d": Kind.DELETE,
    "t": Kind.TRUNCATE,
}
_ROWS: Final = frozenset({Kind.INSERT, Kind.UPDATE, Kind.DELETE})
_NO_HEADERS: Final[Mapping[str, bytes]] = {}
_TABLES_KNOWN: Final = 4096
_BOUNDARY: Final = {"status", "id", "event_count", "data_collections", "ts_ms"}
_BOUNDARIES: Final = ("BEGIN", "END")
_OTHER_SHAPE: Final = (
    *(AttributeError, KeyError, RecursionError, TypeError, ValueError),
)
"""Errors that a record of another shape raises."""


class Envelope(NamedTuple):
    """Content of a record: the op of a row or of a table."""

    op: ReplicationOp  # of its table the key is what the record's key names
    exact: bool  # is its position walstream's own: see `position`
    schemas: Schemas | None  # None: the record has none


class EnvelopeDecoder:
    """Reads the records of one connector."""

    def __init__(self, unavailable: str = UNAVAILABLE) -> None:
        """`unavailable`: its placeholder of an unchanged TOAST value."""
        self._unavailable = Unavailable(unavailable)

    def read(
        self,
        value: bytes,
        key: bytes | None = None,
        headers: Mapping[str, bytes] = _NO_HEADERS,
    ) -> Envelope | None:
        """Read one record; raise WalstreamError for all other records.

        None: a logical message, BEGIN or END of a transaction, a heartbeat. Values that
        were not sent come back as OMITTED. Keys of another form name no columns.
        """
        try:
            return self._read(value, key, headers)
        except _OTHER_SHAPE as error:
            name = type(error).__name__
            raise WalstreamError(f"not a record of Debezium: {name}") from None

    def read_document(
        self,
        envelope: Any,
        schemas: Schemas,
        key: tuple[str, ...] = (),
        headers: Mapping[str, bytes] = _NO_HEADERS,
    ) -> Envelope | None:
        """Read what another encoding held, as JSON would have it: as `read` does.

        `schemas` are those of the columns, see `field_schemas`; `key` names the fields
        of the record's key.
        """
        try:
            if _has_op(envelope, key):
                return self._envelope(envelope, schemas, key, headers)
        except _OTHER_SHAPE as error:
            name = type(error).__name__
            raise WalstreamError(f"not a record of Debezium: {name}") from None
        return None

    def _read(
        self, value: bytes, key: bytes | None, headers: Mapping[str, bytes]
    ) -> Envelope | None:
        found = orjson.loads(value)
        told = found["schema"] if "payload" in found else None
        envelope = found.get("payload", found)
        names = key_names(key)
        if not _has_op(envelope, names):
            return None
        schemas = None if told is None else field_schemas(told)
        if may_be_rounded(envelope, schemas):
            found = exact(value)
            envelope = found.get("payload", found)
        return self._envelope(envelope, schemas, names, headers)

    def _envelope(
        self,
        envelope: Mapping[str, Any],
        schemas: Schemas | None,
        key: tuple[str, ...],
        headers: Mapping[str, bytes],
    ) -> Envelope:
        place = position(envelope, headers)
        op = self._op(envelope, key, schemas or {})
        op.lsn, op.seq_id = place.lsn, place.seq_id
        return Envelope(op, place.exact, schemas)

    def _op(
        self, envelope: Mapping[str, Any], key: tuple[str, ...], schemas: Schemas
    ) -> ReplicationOp:
        kind, source = _KINDS[envelope["op"]], envelope["source"]
        before, after = envelope["before"], envelope["after"]
        if after is None and before is None and kind is not Kind.TRUNCATE:
            raise ValueError("no row")
        columns = tuple(before if after is None else after) if kind in _ROWS else ()
        table = _table(source["schema"], source["table"], columns, key)
        op = ReplicationOp(kind, table, 0, 0)
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
        self, columns: tuple[str, ...], fields: Mapping[str, Any], schemas: Schemas
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


def _has_op(envelope: Mapping[str, Any], key: tuple[str, ...]) -> bool:
    """Return whether a record has one; raise WalstreamError for another connector's."""
    if is_other(envelope, key):
        return False
    connector = envelope["source"]["connector"]
    if connector != CONNECTOR:
        raise WalstreamError(
            f"a record of Debezium's connector {connector!r}, where {CONNECTOR!r} is"
            " read"
        )
    return not (envelope["op"] == "m" and "message" in envelope)


def is_other(envelope: Mapping[str, Any], key: tuple[str, ...]) -> bool:
    """Return whether it is BEGIN or END of a transaction, or a heartbeat."""
    names = envelope.keys()
    if names == _BOUNDARY:
        return envelope["status"] in _BOUNDARIES
    return names == {"ts_ms"} and key == ("serverName",)


def field_schemas(told: Mapping[str, Any]) -> Schemas:
    """Return the schema of each column, by an envelope's.

    Those of `before` and `after` are the same.
    """
    for field in told["fields"]:
        if field["field"] == "after":
            return {one["field"]: one for one in field["fields"]}
    return {}


def key_names(key: bytes | None) -> tuple[str, ...]:
    """Return the names of a key's columns, as far as it is an object."""
    if key is None:
        return ()
    try:
        found = orjson.loads(key)
    except ValueError:
        return ()
    if isinstance(found, dict) and found.keys() == {"schema", "payload"}:
        found = found["payload"]
    return tuple(found) if isinstance(found, dict) else ()


@lru_cache(_TABLES_KNOWN)
def _table(
    schema: object, name: object, columns: tuple[str, ...], key: tuple[str, ...]
) -> Table:
    """Make one Table for all ops that look alike.

    A key that names other things than columns is not the row's: a router made it.
    """
    if not (isinstance(schema, str) and isinstance(name, str)):
        raise TypeError
    if not set(key) <= set(columns):
        key = ()
    places = tuple(index for index, column in enumerate(columns) if column in key)
    return Table(schema, name, columns, places)
