"""Any record's value -> Content, told by its shape: nothing is refused.

What is of no known format is text, or bytes. `op` is read by its own module, Debezium's
formats by another here; `event`, `tungsten` and `row` as far as showing them needs.
A record with the header of Debezium's formats has no other one, whatever its columns.
"""

from collections.abc import Callable, Iterable
from typing import Final

import orjson

from walstream.cli.tail import debezium
from walstream.cli.tail.content import Columns, Content, ContentKind, Format
from walstream.cli.tail.debezium import Headers
from walstream.cli.tail.escape import is_text
from walstream.cli.tail.exact_json import (
    columns_of,
    exact,
    fields_of,
    lsn_of,
    number_of,
    rest_of,
    text_of,
    value_of,
)
from walstream.errors import WalstreamError
from walstream.formats import op as op_format
from walstream.op import Table
from walstream.row import NotSent, Row

_NO_HEADERS: Final[Headers] = {}


def read(
    value: bytes | None, key: bytes | None = None, headers: Headers = _NO_HEADERS
) -> Content:
    """Return what a record says; never raises."""
    try:
        lsn, seq_id = debezium.named(headers)
    except ValueError:
        headers, lsn, seq_id = {}, None, None
    if value is None:
        return Content(None, ContentKind.TOMBSTONE, lsn=lsn, seq_id=seq_id)
    try:
        fields = orjson.loads(value)
    except ValueError:
        return Content(Format.TEXT if is_text(value) else Format.BYTES)
    if not isinstance(fields, dict):
        return Content(Format.TEXT)
    try:
        for marks, reader in _SHAPES:
            if marks <= fields.keys() and lsn is None:
                return reader(value)
        found = debezium.read(value, key, headers)
    except _MISSHAPEN:
        found = None
    return Content(Format.TEXT) if found is None else found


def _op(value: bytes) -> Content:
    op = op_format.decode(value)
    return Content(
        Format.OP,
        ContentKind(op.kind.value.lower()),
        schema=text_of(op.table.schema),
        table=text_of(op.table.name),
        lsn=op.lsn,
        seq_id=op.seq_id,
        old=_row(op.table, op.old),
        new=_row(op.table, op.new),
        snapshot=op.snapshot is True,
        more={"partitions": value_of(op.partitions)} if op.partitions else {},
    )


def _row(table: Table, row: Row | None) -> Columns | None:
    if row is None:
        return None
    columns = dict(zip(table.columns, row, strict=True))
    if len(columns) != len(row):  # a name that comes twice would hide a value
        raise ValueError
    for name, value in columns.items():
        text_of(name)
        if not isinstance(value, str | NotSent | None):
            raise TypeError
    return columns


def _event(value: bytes) -> Content:
    fields = exact(value)
    kind = ContentKind(text_of(fields["Action"]))
    columns = columns_of(fields_of(fields["Columns"]))
    deleted = kind is ContentKind.DELETE
    return Content(
        Format.EVENT,
        kind,
        table=text_of(fields["Table"]),
        lsn=lsn_of(number_of(fields["WALPosition"])),
        old=columns if deleted else None,
        new=columns if kind in {ContentKind.INSERT, ContentKind.UPDATE} else None,
        more=rest_of(fields, {"Action", "Columns", "Table", "WALPosition"}),
    )


def _tungsten(value: bytes) -> Content:
    fields = exact(value)
    kind = ContentKind(text_of(fields["_optype"]).lower())
    row = columns_of(fields_of(fields["record"]))
    deleted = kind is ContentKind.DELETE
    schema, table = fields.get("_source_schema"), fields.get("_source_table")
    return Content(
        Format.TUNGSTEN,
        kind,
        schema=None if schema is None else text_of(schema),
        table=None if table is None else text_of(table),
        lsn=lsn_of(text_of(fields["_seqno"])),
        old=row if deleted else None,
        new=None if deleted else row,
        more=rest_of(
            fields, {"_optype", "record", "_source_schema", "_source_table", "_seqno"}
        ),
    )


def _transaction(value: bytes) -> Content:
    fields = exact(value)
    return Content(
        Format.TUNGSTEN,
        ContentKind.TRANSACTION,
        lsn=lsn_of(text_of(fields["_seqno"])),
        more={
            **columns_of(fields_of(fields["txinfo"])),
            **rest_of(fields, {"_seqno", "txinfo", "lsn"}),
        },
    )


def _polled(value: bytes) -> Content:
    fields = exact(value)
    return Content(
        Format.ROW,
        ContentKind.INSERT,
        table=text_of(fields["table"]),
        new=columns_of(fields_of(fields["data"])),
        more=rest_of(fields, {"table", "data"}),
    )


_SHAPES: Final[Iterable[tuple[set[str], Callable[[bytes], Content]]]] = (
    ({"table_name", "col_names", "lsn", "seq_id", "op"}, _op),
    ({"Table", "Action", "WALPosition", "Columns"}, _event),
    ({"_seqno", "_optype", "record"}, _tungsten),
    ({"_seqno", "txinfo"}, _transaction),
    ({"name", "table", "data", "hash"}, _polled),
)
_MISSHAPEN: Final = (
    WalstreamError,
    AttributeError,
    KeyError,
    RecursionError,
    TypeError,
    ValueError,
)
