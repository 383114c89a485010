"""Records of Debezium's formats -> Content, walstream's and Debezium's own.

An envelope is known by its shape, with its schema or without. A row alone is known by
walstream's header or by its schema, and tells no operation unless a field was added.
"""

from collections.abc import Mapping
from typing import Final

from walstream.cli.tail.content import Columns, Content, ContentKind, Format
from walstream.cli.tail.exact_json import (
    Fields,
    columns_of,
    exact,
    fields_of,
    lsn_of,
    number_of,
    rest_of,
    text_of,
    value_of,
)
from walstream.formats.debezium.decode import is_other, key_names
from walstream.formats.debezium.position import HEADER, position, read_header
from walstream.lsn import Lsn

Headers = Mapping[str, bytes]

_ENVELOPE: Final = {"before", "after", "source", "op"}
_MESSAGE: Final = {"source", "op", "message"}
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
_ROW_SCHEMA: Final = ".Value"
_DELETED: Final = "__deleted"
_OP: Final = "__op"


def read(value: bytes, key: bytes | None, headers: Headers) -> Content | None:
    """Return what a record says, None for one of another format.

    Raises ValueError, TypeError, KeyError or WalstreamError for what is neither.
    """
    found = exact(value)
    wrapped = found.keys() == {"schema", "payload"}
    fields = fields_of(found["payload"]) if wrapped else found
    if fields.keys() >= _ENVELOPE and isinstance(fields["source"], dict):
        return _envelope(fields, headers)
    if fields.keys() >= _MESSAGE and fields["op"] == "m":
        return _message(fields)
    if is_other(fields, key_names(key)):
        boundary = "status" in fields
        kind = ContentKind.TRANSACTION if boundary else ContentKind.HEARTBEAT
        return Content(Format.DEBEZIUM, kind, more=columns_of(fields))
    if HEADER in headers or (wrapped and _is_of_row(found["schema"])):
        return _row(fields, headers)
    return None


def _is_of_row(schema: object) -> bool:
    """Return whether it is the schema of a table's rows."""
    return text_of(fields_of(schema).get("name")).endswith(_ROW_SCHEMA)


def named(headers: Headers) -> tuple[Lsn | None, int | None]:
    """Return the position that walstream's header has."""
    told = headers.get(HEADER)
    return (None, None) if told is None else read_header(told)


def _envelope(fields: Fields, headers: Headers) -> Content:
    source = fields_of(fields["source"])
    lsn, seq_id = _position(fields, source, headers)
    before, after = fields["before"], fields["after"]
    return Content(
        Format.DEBEZIUM,
        _OPERATIONS[text_of(fields["op"])],
        schema=text_of(source["schema"]),
        table=text_of(source["table"]),
        lsn=lsn,
        seq_id=seq_id,
        old=None if before is None else columns_of(fields_of(before)),
        new=None if after is None else columns_of(fields_of(after)),
        snapshot=source.get("snapshot") not in {None, "false"},
        more=rest_of(source, _SOURCE),
    )


def _position(
    fields: Fields, source: Fields, headers: Headers
) -> tuple[Lsn | None, int | None]:
    """Return walstream's name of the op, or the row's own LSN alone."""
    block = fields.get("transaction")
    if block is not None:
        block = {"total_order": number_of(fields_of(block)["total_order"])}
    place = position({"source": {**source, "lsn": 0}, "transaction": block}, headers)
    if place.exact:
        return place.lsn, place.seq_id
    lsn = source.get("lsn")
    return None if lsn is None else lsn_of(number_of(lsn)), None


def _message(fields: Fields) -> Content:
    source, message = fields_of(fields["source"]), fields_of(fields["message"])
    lsn = source.get("lsn")
    return Content(
        Format.DEBEZIUM,
        ContentKind.MESSAGE,
        lsn=None if lsn is None else lsn_of(number_of(lsn)),
        more={**columns_of(message), **rest_of(source, _SOURCE)},
    )


def _row(fields: Fields, headers: Headers) -> Content:
    lsn, seq_id = named(headers)
    kind = _OPERATIONS.get(str(fields.get(_OP)))
    if fields.get(_DELETED) == "true":
        kind = ContentKind.DELETE
    row: Columns = {name: value_of(value) for name, value in fields.items()}
    deleted = kind is ContentKind.DELETE
    return Content(
        Format.DEBEZIUM_ROW,
        kind,
        lsn=lsn,
        seq_id=seq_id,
        old=row if deleted else None,
        new=None if deleted else row,
    )
