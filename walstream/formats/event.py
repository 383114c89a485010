"""The format `event`: one row with typed values, its columns sorted by name.

    {"Host":"h","Database":"d","Table":"t","Action":"insert","WALPosition":28317656,
     "Timestamp":"2026-11-21T06:28:02.5Z","UUID":"…","Columns":{"a":1,"b":"x"}}

`WALPosition` is the row's own LSN. What was not sent is left out; of a deleted row the
key stands there, and null for every other column. docs/formats.md has the whole of it.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha1
from itertools import zip_longest
from typing import Any, ClassVar, Final
from uuid import NAMESPACE_URL

import orjson

from walstream.errors import WalstreamError
from walstream.formats import timestamp as instant
from walstream.formats.context import Context, SourceOrigin
from walstream.formats.value import json_text, renderer
from walstream.lsn import MAX, Lsn
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import Value

ACTIONS: Final = {
    Kind.INSERT: "insert",
    Kind.UPDATE: "update",
    Kind.DELETE: "delete",
    Kind.TRUNCATE: "truncate",
}
_KINDS: Final = {action: kind for kind, action in ACTIONS.items()}
_NAMES: Final = ("Host", "Database", "Table", "Timestamp")


class EventEncoder:
    """Encodes the ops of one table."""

    truncates: ClassVar = True

    def __init__(self, table: Table, context: Context) -> None:
        origin = context.origin
        heads = [orjson.dumps(t) for t in (origin.host, origin.database, table.name)]
        self._heads = {
            kind: b'{"Host":%b,"Database":%b,"Table":%b,"Action":"%b","WALPosition":'
            % (*heads, action.encode())
            for kind, action in ACTIONS.items()
        }
        described = zip_longest(table.columns, table.type_oids, fillvalue=0)
        self._columns = sorted(
            (str(name), orjson.dumps(name) + b":", index, renderer(int(oid)))
            for index, (name, oid) in enumerate(described)
        )
        self.texts = frozenset(
            index for _, _, index, render in self._columns if render is json_text
        )
        self._key = frozenset(table.key)
        self._uuids = _Uuids(origin)
        self._stamp = (0, b"")

    def encode(self, op: ReplicationOp) -> bytes:
        """Render one op of this encoder's table."""
        if op.kind is Kind.DELETE:
            columns = self._write(self._deleted(op.old or ()))
        elif op.kind is Kind.TRUNCATE:
            columns = b""
        else:
            columns = self._write(op.new or ())
        if op.commit_time != self._stamp[0] or not self._stamp[1]:
            stamp = instant.rfc3339(op.commit_time).encode()
            self._stamp = (op.commit_time, stamp)
        return b'%b%d,"Timestamp":"%b","UUID":"%b","Columns":{%b}}' % (
            self._heads[op.kind],
            op.row_lsn,
            self._stamp[1],
            self._uuids.of(op),
            columns,
        )

    def _write(self, row: Sequence[Value]) -> bytes:
        written = []
        for _, name, index, render in self._columns:
            value = row[index]
            if value is None:
                written.append(name + b"null")
            elif isinstance(value, str):
                written.append(name + render(value))
        return b",".join(written)

    def _deleted(self, row: Sequence[Value]) -> Sequence[Value]:
        """Keep the key; of a table without one, all that was sent."""
        if not self._key:
            return row
        key = self._key
        return [value if index in key else None for index, value in enumerate(row)]


class _Uuids:
    """Names ops as no other op is named, and again the same in a replay."""

    def __init__(self, origin: SourceOrigin) -> None:
        name = f"walstream:{origin.system_identifier}/{origin.slot}/"
        self._hash = sha1(NAMESPACE_URL.bytes + name.encode(), usedforsecurity=False)

    def of(self, op: ReplicationOp) -> bytes:
        """Return uuid5(NAMESPACE_URL, "walstream:SYSTEM/SLOT/LSN/SEQ_ID")."""
        hashed = self._hash.copy()
        hashed.update(b"%d/%d" % (op.lsn, op.seq_id))
        digest = bytearray(hashed.digest()[:16])
        digest[6] = digest[6] & 0x0F | 0x50
        digest[8] = digest[8] & 0x3F | 0x80
        text = digest.hex()
        return (
            f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}".encode()
        )


class Number(str):
    """A number of JSON, with every digit that was written."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Print it as a number."""
        return str(self)


@dataclass(frozen=True, slots=True)
class EventRecord:
    """Contents of a record; its columns are read only on demand."""

    host: str
    database: str
    table: str  # its bare name
    kind: Kind
    row_lsn: Lsn
    timestamp: str  # RFC 3339
    uuid: str | None
    value: bytes = field(repr=False)  # as it came

    def columns(self) -> dict[str, Any]:
        """Read the columns: JSON's values, each number a `Number`.

        Raises WalstreamError where they are nested deeper than can be read.
        """
        try:
            columns: dict[str, Any] = _exact(self.value)["Columns"]
        except RecursionError:
            raise _refused("nested too deep") from None
        return columns

    def op(self) -> ReplicationOp:
        """Make an op as far as it goes: no schema, no seq_id, the row's LSN as its own.

        Its values are texts: booleans as PostgreSQL prints them, arrays as JSON.
        Raises WalstreamError where the time cannot be read.
        """
        columns = self.columns()
        row = [_as_text(value) for value in columns.values()]
        deleted = self.kind is Kind.DELETE
        try:
            commit_time = instant.read(self.timestamp)
        except (OverflowError, ValueError):
            raise _refused("Timestamp") from None
        return ReplicationOp(
            self.kind,
            Table("", self.table, tuple(columns)),
            self.row_lsn,
            0,
            old=row if deleted else None,
            new=row if self.kind in {Kind.INSERT, Kind.UPDATE} else None,
            row_lsn=self.row_lsn,
            commit_time=commit_time,
        )


def decode(value: bytes) -> EventRecord:
    """Read one record's value back; raise WalstreamError for anything else.

    Unknown fields are ignored; a record without a UUID is one, too.
    """
    try:
        fields = _fields(value)
        texts = [fields[name] for name in _NAMES]
        lsn, uuid = fields["WALPosition"], fields.get("UUID")
        kind = _KINDS[fields["Action"]]
        if type(lsn) is Number and lsn.isdigit():
            lsn = int(lsn)
        if type(lsn) is not int or not 0 <= lsn <= MAX:
            raise TypeError
        if type(fields["Columns"]) is not dict:
            raise TypeError
        if {*map(type, texts), type(uuid or "")} != {str}:
            raise TypeError
        "".join(texts).encode()  # of whole characters
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise _refused(type(error).__name__) from None
    host, database, table, timestamp = texts
    return EventRecord(host, database, table, kind, lsn, timestamp, uuid, value)


def _refused(what: str) -> WalstreamError:
    return WalstreamError(f"not an event record: {what}")


def _fields(value: bytes) -> dict[str, Any]:
    try:
        fields: dict[str, Any] = orjson.loads(value)
    except ValueError:
        return _exact(value)  # a number above 1e308, half of a surrogate pair
    return fields


def _exact(value: bytes) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(
        value.decode(),
        parse_int=Number,
        parse_float=Number,
        parse_constant=_no_constant,
    )
    return fields


def _no_constant(_: str) -> None:
    raise ValueError  # NaN and the infinities are no JSON


def _as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "t" if value else "f"
    return _json(value)


def _json(value: Any) -> str:
    """Write compact JSON, with numbers as they came."""
    if isinstance(value, Number):
        return value
    if isinstance(value, dict):
        items = (f"{_json(name)}:{_json(item)}" for name, item in value.items())
        return f"{{{','.join(items)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_json, value))}]"
    return json.dumps(value, ensure_ascii=False)
