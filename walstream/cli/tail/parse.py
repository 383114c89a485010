"""Any record's value -> Content, told by its shape: nothing is refused.

What is of no known format is text, or bytes. `op` is read by its own module; `event`,
`tungsten`, `debezium` and `row` are read here only as far as showing them needs.
"""

import json
from collections.abc import Callable, Iterable
from typing import Final

import orjson

from walstream.cli.tail.content import (
    Columns,
    Content,
    ContentKind,
    Format,
    Json,
    Value,
)
from walstream.cli.tail.escape import is_text
from walstream.errors import WalstreamError
from walstream.formats import op as op_format
from walstream.lsn import MAX, Lsn
from walstream.op import Table
from walstream.row import NotSent, Row

Fields = dict[str, object]


def read(value: bytes | None) -> Content:
    """Return what a value says; never raises."""
    if value is None:
        return Content(None, ContentKind.TOMBSTONE)
    try:
        fields = orjson.loads(value)
    except ValueError:
        return Content(Format.TEXT if is_text(value) else Format.BYTES)
    if isinstance(fields, dict):
        for marks, reader in _SHAPES:
            if marks <= fields.keys():
                try:
                    return reader(value)
                except _MISSHAPEN:
                    break
    return Content(Format.TEXT)


def _op(value: bytes) -> Content:
    op = op_format.decode(value)
    return Content(
        Format.OP,
        ContentKind(op.kind.value.lower()),
        schema=_text(op.table.schema),
        table=_text(op.table.name),
        lsn=op.lsn,
        seq_id=op.seq_id,
        old=_row(op.table, op.old),
        new=_row(op.table, op.new),
        snapshot=op.snapshot is True,
        more={"partitions": _value(op.partitions)} if op.partitions else {},
    )


def _row(table: Table, row: Row | None) -> Columns | None:
    if row is None:
        return None
    columns = dict(zip(table.columns, row, strict=True))
    if len(columns) != len(row):  # a name that comes twice would hide a value
        raise ValueError
    for name, value in columns.items():
        _text(name)
        if not isinstance(value, str | NotSent | None):
            raise TypeError
    return columns


def _event(value: bytes) -> Content:
    fields = _exact(value)
    kind = ContentKind(_text(fields["Action"]))
    columns = _columns(_object(fields["Columns"]))
    deleted = kind is ContentKind.DELETE
    return Content(
        Format.EVENT,
        kind,
        table=_text(fields["Table"]),
        lsn=_lsn(_number(fields["WALPosition"])),
        old=columns if deleted else None,
        new=columns if kind in {ContentKind.INSERT, ContentKind.UPDATE} else None,
        more=_rest(fields, {"Action", "Columns", "Table", "WALPosition"}),
    )


def _tungsten(value: bytes) -> Content:
    fields = _exact(value)
    kind = ContentKind(_text(fields["_optype"]).lower())
    row = _columns(_object(fields["record"]))
    deleted = kind is ContentKind.DELETE
    schema, table = fields.get("_source_schema"), fields.get("_source_table")
    return Content(
        Format.TUNGSTEN,
        kind,
        schema=None if schema is None else _text(schema),
        table=None if table is None else _text(table),
        lsn=_lsn(_text(fields["_seqno"])),
        old=row if deleted else None,
        new=None if deleted else row,
        more=_rest(
            fields, {"_optype", "record", "_source_schema", "_source_table", "_seqno"}
        ),
    )


def _transaction(value: bytes) -> Content:
    fields = _exact(value)
    return Content(
        Format.TUNGSTEN,
        ContentKind.TRANSACTION,
        lsn=_lsn(_text(fields["_seqno"])),
        more={
            **_rest(fields, {"_seqno", "txinfo"}),
            **_columns(_object(fields["txinfo"])),
        },
    )


def _debezium(value: bytes) -> Content:
    """Read an envelope, walstream's or Debezium's own, with its schema or without."""
    fields = _exact(value)
    if "payload" in fields:
        fields = _object(fields["payload"])
    source = _object(fields["source"])
    lsn = source.get("lsn")
    before, after = fields["before"], fields["after"]
    return Content(
        Format.DEBEZIUM,
        _OPERATIONS[_text(fields["op"])],
        schema=_text(source["schema"]),
        table=_text(source["table"]),
        lsn=None if lsn is None else _lsn(_number(lsn)),
        old=None if before is None else _columns(_object(before)),
        new=None if after is None else _columns(_object(after)),
        snapshot=source.get("snapshot") not in {None, "false"},
        more=_rest(source, _SOURCE),
    )


def _polled(value: bytes) -> Content:
    fields = _exact(value)
    return Content(
        Format.ROW,
        ContentKind.INSERT,
        table=_text(fields["table"]),
        new=_columns(_object(fields["data"])),
        more=_rest(fields, {"table", "data"}),
    )


_SHAPES: Final[Iterable[tuple[set[str], Callable[[bytes], Content]]]] = (
    ({"table_name", "col_names", "lsn", "seq_id", "op"}, _op),
    ({"Table", "Action", "WALPosition", "Columns"}, _event),
    ({"_seqno", "_optype", "record"}, _tungsten),
    ({"_seqno", "txinfo"}, _transaction),
    ({"name", "table", "data", "hash"}, _polled),
    ({"before", "after", "source", "op"}, _debezium),
    ({"schema", "payload"}, _debezium),
)
_OPERATIONS: Final = {
    "c": ContentKind.INSERT,
    "r": ContentKind.INSERT,
    "u": ContentKind.UPDATE,
    "d": ContentKind.DELETE,
    "t": ContentKind.TRUNCATE,
}
_SOURCE: Final = {
    *("version", "connector", "name", "db", "schema", "table", "lsn", "snapshot"),
    *("ts_us", "ts_ns", "xmin", "origin", "origin_lsn", "sequence"),
}
"""Fields of `source` that are shown elsewhere, or are the same in each record."""
_MISSHAPEN: Final = (
    WalstreamError,
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)


def _exact(value: bytes) -> Fields:
    """Parse with every number as it is written, and refuse names that come twice."""
    fields: Fields = json.loads(
        value.decode(), parse_float=Json, parse_int=Json, object_pairs_hook=_unique
    )
    return fields


def _unique(pairs: list[tuple[str, object]]) -> Fields:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError
    return fields


def _columns(fields: Fields) -> Columns:
    return {name: _value(value) for name, value in fields.items()}


def _rest(fields: Fields, known: set[str]) -> Columns:
    return {name: _value(fields[name]) for name in fields if name not in known}


def _value(value: object) -> Value:
    if value is None or isinstance(value, str | Json):
        return value
    return Json(_write(value))


def _write(value: object) -> str:
    """Write compact JSON, with numbers as they came."""
    if isinstance(value, Json):
        return value.text
    if isinstance(value, dict):
        items = (f"{_write(name)}:{_write(item)}" for name, item in value.items())
        return f"{{{','.join(items)}}}"
    if isinstance(value, list):
        return f"[{','.join(map(_write, value))}]"
    return json.dumps(value, ensure_ascii=False)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _object(value: object) -> Fields:
    if not isinstance(value, dict):
        raise TypeError
    return value


def _number(value: object) -> str:
    if not isinstance(value, Json):
        raise TypeError
    return value.text


def _lsn(text: str) -> Lsn:
    if not (text.isascii() and text.isdecimal() and int(text) <= MAX):
        raise ValueError
    return int(text)
