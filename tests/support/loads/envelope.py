"""Records of Debezium as a consumer gets them: made by hand, or by a real Debezium."""

import json
from collections.abc import Mapping
from typing import Any, Final

from consumer.decoder import Decoder
from consumer.op import ConsumerRecord, EnvelopeOp
from tests.support.oracles.debezium import golden

Document = dict[str, Any]
SOURCE: Final = {
    "version": "3.5.0.Final",
    "connector": "postgresql",
    "name": "app",
    "ts_ms": 1764000000123,
    "snapshot": "false",
    "db": "shop",
    "schema": "public",
    "table": "t",
    "txId": 7,
    "lsn": 1,
}


def envelope(
    op: str,
    *,
    before: Document | None = None,
    after: Document | None = None,
    order: int | None = None,
    **source: Any,
) -> Document:
    """Make an envelope without schemas; `order` is total_order."""
    block = None if order is None else {"id": "7:1", "total_order": order}
    told = {**SOURCE, **source}
    return {
        "before": before,
        "after": after,
        "source": told,
        "transaction": block,
        "op": op,
    }


def with_schema(found: Document, columns: Mapping[str, Any]) -> Document:
    """Put columns' schemas around an envelope: a type, or a named one as a pair."""
    fields = [
        {"field": name, **(_schema(told) if isinstance(told, str) else told)}
        for name, told in columns.items()
    ]
    rows = [{"field": name, "fields": fields} for name in ("before", "after")]
    return {"schema": {"type": "struct", "fields": rows}, "payload": found}


def _schema(told: str) -> Document:
    """Read `int32`, or `int32 io.debezium.time.Date`."""
    kind, _, name = told.partition(" ")
    return {"type": kind, "name": name} if name else {"type": kind}


def record(
    value: Document | bytes | None,
    key: Document | bytes | None = None,
    *,
    offset: int = 0,
    headers: Mapping[str, bytes] | None = None,
    topic: str = "t",
) -> ConsumerRecord:
    """Return the record of a value and a key."""
    return ConsumerRecord(
        topic,
        0,
        offset,
        json.dumps(key).encode() if isinstance(key, dict) else key,
        json.dumps(value).encode() if isinstance(value, dict) else value,
        1764000000123,
        tuple((headers or {}).items()),
    )


def debezium(
    topic: str, number: int, headers: Mapping[str, bytes] | None = None
) -> ConsumerRecord:
    """Return one that a real Debezium wrote."""
    found = golden()[topic][number]
    texts = (None if one is None else one.encode() for one in (found.value, found.key))
    own = {name: text.encode() for name, text in found.headers}
    return record(*texts, offset=number, headers={**own, **(headers or {})})


def read(found: ConsumerRecord) -> EnvelopeOp:
    """Return the op in it."""
    op = Decoder().op_of(found)
    assert isinstance(op, EnvelopeOp)
    return op
