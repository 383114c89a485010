"""Records that Debezium's EventRouter made, and those of walstream of the same WAL.

tests/data/outbox/record.py says how they came about.
"""

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

from tests.data.outbox.record import FOLDER, VARIANTS, table_of
from tests.support.oracles.column_facts import column_facts
from walstream.config.handler import OutboxHandler
from walstream.errors import HistoryError
from walstream.lsn import parse
from walstream.op import ReplicationOp, Table
from walstream.pipeline.assembler import Assembler
from walstream.pipeline.pgoutput import (
    Begin,
    Delete,
    Insert,
    Relation,
    Type,
    Update,
    decode,
)
from walstream.pipeline.row_key import KeyHistory, KeySet
from walstream.records.handlers.outbox import Outbox
from walstream.records.producer_record import ProducerRecord

_CONTEXT: Final = "__debezium."  # headers that say which connector it was
_FORMS: Final = {"StringConverter": "text", "JsonConverter": "json"}
_PLAIN: Final = {
    "table.field.event.timestamp": "timestamp",
    "route.topic.replacement": "topic",
}


@dataclass(frozen=True)
class Routed:
    """A record, by the header id that its event has."""

    id: str
    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp: int | None = None
    partition: int | None = None


@cache
def golden(variant: str) -> Mapping[str, Routed]:
    """Read the records that Debezium wrote, by event."""
    every = json.loads(gzip.decompress((FOLDER / "golden.json.gz").read_bytes()))
    found = {}
    for topic, records in every[variant].items():
        for partition, timestamp, key, value, written in records:
            headers = tuple(
                (name, _bytes(text))
                for name, text in written
                if not name.startswith(_CONTEXT)
            )
            event = (headers[0][1] or b"").decode()
            made = (topic, _bytes(key), _bytes(value), headers, timestamp, partition)
            found[event] = Routed(event, *made)
    return found


def _bytes(told: Any) -> bytes | None:
    if isinstance(told, dict):
        return bytes.fromhex(told["hex"])
    return None if told is None else str(told).encode()


def settings(variant: str) -> dict[str, Any]:
    """Return walstream's options for a connector's settings."""
    told = VARIANTS[variant]
    found: dict[str, Any] = {
        name: told[theirs] for theirs, name in _PLAIN.items() if theirs in told
    }
    found["topic"] = found.get("topic", "outbox.event.{value}").replace(
        "${routedByValue}", "{value}"
    )
    value = told["value.converter"].rpartition(".")[2]
    key = told["key.converter"].rpartition(".")[2]
    found["key_form"] = _FORMS[key]
    found["payload_form"] = "json_string" if value == "JsonConverter" else "raw"
    found["schemas"] = value == "JsonConverter" and (
        told.get("value.converter.schemas.enable") != "false"
    )
    if told.get("table.expand.json.payload"):
        found["payload_form"] = "expand"
    if told.get("table.json.payload.null.behavior"):
        found["nulls"] = "keep"
    if told.get("route.tombstone.on.empty.payload"):
        found["empty_payload"] = "tombstone"
    for one in told.get("table.fields.additional.placement", "").split(","):
        column, _, placement = one.partition(":")
        placement, _, alias = placement.partition(":")
        if placement == "partition":
            found["partition"] = column
        elif placement:
            placed = "headers" if placement == "header" else "envelope"
            found.setdefault(placed, {})[alias or column] = column
    if found["schemas"]:
        found["schema_prefix"] = variant
    return found


def handler(variant: str, table: Table) -> Outbox:
    """Make the handler, as the configuration has it."""
    told = OutboxHandler(kind="outbox", tables=["public.*"], **settings(variant))
    return Outbox(table, told.model_dump(exclude={"kind", "tables"}))


def ops() -> Iterator[ReplicationOp]:
    """Yield the ops, their tables with facts."""
    frames = json.loads(gzip.decompress((FOLDER / "frames.json.gz").read_bytes()))
    facts = json.loads((FOLDER / "facts.json").read_text("utf-8"))
    assembler = Assembler(0)
    tables: dict[str, Table] = {}
    for lsn, payload in frames:
        match message := decode(bytes.fromhex(payload)):
            case Begin():
                assembler.begin(message)
            case Type():
                assembler.name_type(message)
            case Relation():
                keys = KeyHistory([KeySet(0, ())])
                table = assembler.describe(message, keys)
                told = facts[table.name]
                made = tuple(column_facts(told[name]) for name in table.columns)
                tables[table.name] = replace(table, facts=made)
            case Insert() | Update() | Delete():
                op = assembler.row(message, parse(lsn))
                op.table = tables[op.table.name]
                yield op
            case _:
                pass


def routed(variant: str) -> Mapping[str, Routed | HistoryError]:
    """Give walstream's records of a variant, or why there is none, by event."""
    found: dict[str, Routed | HistoryError] = {}
    made: Outbox | None = None
    for op in ops():
        if op.table.name != table_of(variant):
            continue
        made = made or handler(variant, op.table)
        try:
            records = list(made.handle(op))
        except HistoryError as error:
            found[str((op.new or [""])[0])] = error
            continue
        for record in records:
            one = _routed(record)
            found[one.id] = one
    return found


def _routed(record: ProducerRecord) -> Routed:
    headers = tuple(record.headers)
    return Routed(
        (headers[0][1] or b"").decode(),
        record.topic or "",
        record.key,
        record.value,
        headers,
        record.timestamp,
        record.partition,
    )
