"""Ops made by hand, as a consumer hands them over."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from consumer.op import ConsumerRecord, Op
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, Value

Texts = Mapping[str, str | None]


def make(
    kind: Kind,
    table: str,
    *,
    new: Texts | None = None,
    old: Texts | None = None,
    **fields: Any,
) -> Op:
    """Make an op of `schema.table`.

    A column of `columns` (by default those of both rows) that a row does not name was
    not sent. `key` are the texts of the record's key.
    """
    schema, _, name = table.partition(".")
    columns = tuple(fields.pop("columns", None) or {**(old or {}), **(new or {})})
    record = ConsumerRecord(
        topic=fields.pop("topic", table),
        partition=fields.pop("partition", 0),
        offset=fields.pop("offset", 0),
        key=_key(fields.pop("key", None)),
        value=b"{}",
        headers=fields.pop("headers", ()),
    )
    op = ReplicationOp(
        kind=kind,
        table=Table(schema, name, columns),
        lsn=fields.pop("lsn", 1),
        seq_id=fields.pop("seq_id", 0),
        old=_row(columns, old),
        new=_row(columns, new),
        **fields,
    )
    return Op.of(op, record)


def _row(columns: Sequence[str], texts: Texts | None) -> list[Value] | None:
    if texts is None:
        return None
    return [texts.get(column, OMITTED) for column in columns]


def _key(texts: Sequence[str] | None) -> bytes | None:
    return None if texts is None else json.dumps(texts).encode()
