"""The format `op`: compact JSON of one ReplicationOp, PostgreSQL's texts or null.

    {"table_name":"t","col_names":["id"],"lsn":28318112,"seq_id":0,"op":{"Insert":["1"]}}

After `op` stand, each only where it applies and in this order: `schema` (when it is not
`public`), `snapshot`, `absent` (names of what PostgreSQL did not send, which is null in
the row), `partitions` (of a Truncate). docs/formats.md has the whole of it.
"""

from functools import lru_cache
from typing import Any, ClassVar, Final

import orjson

from walstream.errors import WalstreamError
from walstream.lsn import Lsn
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, NotSent, Row

_dumps: Final = orjson.dumps
_KINDS: Final = {kind.value: kind for kind in Kind}
_INSERT: Final = Kind.INSERT  # an enum's members are slow to look up in Python 3.11
_UPDATE: Final = Kind.UPDATE
_DELETE: Final = Kind.DELETE
_TRUNCATE: Final = Kind.TRUNCATE
_COMMON_FIELDS: Final = 5  # table_name, col_names, lsn, seq_id, op
_NOTHING_ABSENT: Final[dict[str, list[str]]] = {}
_TABLES_KNOWN: Final = 4096
_TEXT_OR_NULL: Final = frozenset((str, type(None)))
# what JSON or COPY writes with a backslash, and the backslash; tabs and newlines are
# those between values
_ESCAPED: Final = bytes({*range(0x20), *b'"\\'} - {*b"\t\n"})
_PARTITIONS_LIMIT: Final = 100_000  # more than Kafka bears


class OpEncoder:
    """Encodes the ops of one table; what is the same for all rows is rendered once."""

    truncates: ClassVar = True

    def __init__(self, table: Table) -> None:
        self._table = table
        self.texts = range(len(table.columns))
        self._head = b'{"table_name":%b,"col_names":%b,"lsn":' % (
            orjson.dumps(table.name),
            orjson.dumps(table.columns),
        )
        self._tail = (
            b',"schema":%b' % orjson.dumps(table.schema)
            if table.schema != "public"
            else b""
        )
        self._row_tail = b"}" + self._tail + b"}"
        self._lsn: Lsn = -1
        self._lsn_head = b""  # up to the number of a row, in that transaction
        self._snapshot_tail = b"}" + self._tail + b',"snapshot":true}'
        self._left_out: list[bool] | None = None  # of the last such Delete
        self._key_tail = b""

    def encode(self, op: ReplicationOp) -> bytes:
        """Render one op of this encoder's table."""
        kind = op.kind
        if op.absent or op.snapshot or kind is _TRUNCATE:
            alone = op.new is None and not op.snapshot
            if kind is _DELETE and alone and op.old is not None:
                return self._encode_key(op, op.old)
            return self._encode_rare(op)
        if op.lsn != self._lsn:
            self._begin(op.lsn)
        number = str(op.seq_id).encode()
        if kind is _INSERT:
            new = _dumps(op.new)
            return b"".join(
                (self._lsn_head, number, b',"op":{"Insert":', new, self._row_tail)
            )
        if kind is _DELETE:
            old = _dumps(op.old)
            return b"".join(
                (self._lsn_head, number, b',"op":{"Delete":', old, self._row_tail)
            )
        body = b"%b,%b]" % (_dumps(op.old), _dumps(op.new))
        return b"".join(
            (self._lsn_head, number, b',"op":{"Update":[', body, self._row_tail)
        )

    def _begin(self, lsn: Lsn) -> None:
        self._lsn = lsn
        self._lsn_head = b'%b%d,"seq_id":' % (self._head, lsn)

    def _encode_key(self, op: ReplicationOp, old: Row) -> bytes:
        """Render a Delete that came with its key alone, as most do."""
        left_out = [isinstance(value, NotSent) for value in old]
        if left_out != self._left_out:
            self._left_out = left_out
            absent = (
                b',"absent":%b' % _dumps(self._absent(op)) if any(left_out) else b""
            )
            self._key_tail = b"}%b%b}" % (self._tail, absent)
        if op.lsn != self._lsn:
            self._begin(op.lsn)
        key = _dumps(_known(old))
        number = str(op.seq_id).encode()
        return b"".join(
            (self._lsn_head, number, b',"op":{"Delete":', key, self._key_tail)
        )

    def encode_lines(self, block: bytes, lsn: Lsn, seq_id: int) -> list[bytes] | None:
        """Render lines of COPY text as snapshot rows, the first of them `seq_id`.

        Tabs become what stands between JSON's texts, and no value is looked at. None:
        some value has to be, since JSON or COPY writes it with a backslash.
        """
        nulls = block.count(b"\\N") if b"\\" in block else 0
        plain = len(block.translate(None, _ESCAPED)) == len(block) - nulls
        if not plain or not self._table.columns:
            return None
        if not block.isascii():
            block.decode()  # a server without an encoding sends any bytes
        lines = block[:-1].replace(b"\t", b'","').replace(b"\n", b'"\n"')
        lines = b'"%b"' % lines
        if nulls:
            lines = lines.replace(b'"\\N"', b"null")
        head = b'%b%d,"seq_id":' % (self._head, lsn)
        record = b'%b%%d,"op":{"Insert":[%%b]%b' % (
            head.replace(b"%", b"%%"),
            self._snapshot_tail.replace(b"%", b"%%"),
        )
        return list(map(record.__mod__, enumerate(lines.split(b"\n"), seq_id)))

    def _encode_rare(self, op: ReplicationOp) -> bytes:
        """Render with the fields that most ops do not have."""
        if op.snapshot and not op.absent and op.kind is Kind.INSERT:
            # backfilled rows: as many as a table has
            return b'%b%d,"seq_id":%d,"op":{"Insert":%b%b' % (
                self._head,
                op.lsn,
                op.seq_id,
                orjson.dumps(op.new),
                self._snapshot_tail,
            )
        old, new = _known(op.old), _known(op.new)
        match op.kind:
            case Kind.INSERT:
                body: object = {"Insert": new}
            case Kind.UPDATE:
                body = {"Update": [old, new]}
            case Kind.DELETE:
                body = {"Delete": old}
            case Kind.TRUNCATE:
                body = "Truncate"
        tail = self._tail
        if op.snapshot:
            tail += b',"snapshot":true'
        if absent := self._absent(op):
            tail += b',"absent":' + orjson.dumps(absent)
        if op.kind is Kind.TRUNCATE:
            tail += b',"partitions":%d' % op.partitions
        return b'%b%d,"seq_id":%d,"op":%b%b}' % (
            self._head,
            op.lsn,
            op.seq_id,
            orjson.dumps(body),
            tail,
        )

    def _absent(self, op: ReplicationOp) -> dict[str, list[str]]:
        halves = {}
        for half, row in (("old", op.old), ("new", op.new)):
            names = [
                name
                for name, value in zip(self._table.columns, row or (), strict=False)
                if isinstance(value, NotSent)
            ]
            if names:
                halves[half] = names
        return halves


def _known(row: Row | None) -> list[str | None] | None:
    if row is None:
        return None
    return [None if isinstance(value, NotSent) else value for value in row]


def decode(value: bytes) -> ReplicationOp:
    """Read one record's value back; raise WalstreamError for anything else.

    Names in `absent` come back as OMITTED. Unknown fields are ignored; an `lsn` that is
    not a JSON number is refused.
    """
    try:
        fields = orjson.loads(value)
        columns, lsn, seq_id = fields["col_names"], fields["lsn"], fields["seq_id"]
        if type(columns) is not list:  # a text is a sequence, too
            raise TypeError
        # orjson makes a float of what has more than 64 bits
        if type(lsn) is not int or type(seq_id) is not int or lsn < 0 or seq_id < 0:
            raise TypeError
        table = _table(
            fields.get("schema", "public"), fields["table_name"], tuple(columns)
        )
        op = ReplicationOp(_TRUNCATE, table, lsn, seq_id)
        absent = _NOTHING_ABSENT
        if len(fields) > _COMMON_FIELDS:
            absent = _decode_rare(op, fields)
        if fields["op"] != "Truncate":
            _decode_rows(op, fields["op"], absent)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        # JSON of another shape: a list where an object belongs, a field missing
        raise WalstreamError(f"not an op record: {type(error).__name__}") from None
    return op


@lru_cache(_TABLES_KNOWN)
def _table(schema: object, name: object, columns: tuple[object, ...]) -> Table:
    """Make one Table for all ops that look alike: most of a decoder's time else."""
    names = [each for each in columns if isinstance(each, str)]
    if not (isinstance(schema, str) and isinstance(name, str)):
        raise TypeError
    if len(names) != len(columns):
        raise TypeError
    return Table(schema, name, tuple(names))


def _decode_rare(op: ReplicationOp, fields: dict[str, Any]) -> dict[str, list[str]]:
    op.absent = "absent" in fields
    snapshot, partitions = fields.get("snapshot", False), fields.get("partitions", 0)
    if type(snapshot) is not bool or type(partitions) is not int:
        raise TypeError
    if not 0 <= partitions <= _PARTITIONS_LIMIT:
        raise TypeError
    op.snapshot, op.partitions = snapshot, partitions
    absent: dict[str, list[str]] = fields.get("absent", _NOTHING_ABSENT)
    return absent


def _decode_rows(op: ReplicationOp, body: Any, absent: dict[str, list[str]]) -> None:
    ((name, rows),) = body.items()
    op.kind = kind = _KINDS[name]
    if kind is _INSERT:
        op.new = _row(op.table, rows, absent.get("new"))
    elif kind is _DELETE:
        op.old = _row(op.table, rows, absent.get("old"))
    elif kind is _UPDATE:
        old, new = rows
        if old is not None:
            op.old = _row(op.table, old, absent.get("old"))
        op.new = _row(op.table, new, absent.get("new"))
    else:
        raise ValueError  # {"Truncate":...}


def _row(table: Table, row: Any, names: object) -> Row:
    if type(row) is not list or len(row) != len(table.columns):
        raise ValueError
    if not _TEXT_OR_NULL.issuperset(map(type, row)):
        raise TypeError
    if not names:
        return row
    if type(names) is not list:
        raise TypeError
    missing = set(names)
    return [
        OMITTED if name in missing else value
        for name, value in zip(table.columns, row, strict=True)
    ]
