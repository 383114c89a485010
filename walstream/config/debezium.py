"""[sinks.NAME.debezium]: options of the formats debezium and debezium_row.

Each has the meaning of Debezium's own property, which its description names.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import Field

from walstream.config.field import DistinctNames, OptionalDuration, Section

FORMATS: Final = frozenset({"debezium", "debezium_row"})
HEARTBEAT_TOPIC: Final = "__debezium-heartbeat"  # topics of heartbeats begin with it
_DEFAULTS: Final = {"tombstones": True, "on_truncate": "skip"}
_SPELLED: Final = {"adjust": "avro", "adjust_fields": "avro"}
NARROW: Final = frozenset({"avro", "protobuf"})
"""Encodings that do not take every name."""
Encoding = Literal["json", "avro", "json_schema", "protobuf"]
_Adjustment = Literal["none", "avro", "avro_unicode"]


class Debezium(Section):
    name: str = Field(
        default="",
        description="Debezium's topic.prefix: the name in records and schemas; "
        "default: the source's.",
    )
    schemas: bool = Field(
        default=False,
        description="Write keys and values with their schemas, as Kafka Connect's "
        "JsonConverter does (schemas.enable).",
    )
    decimal: Literal["precise", "string", "double"] = Field(
        default="precise",
        description="Form of numeric: precise, string or double "
        "(decimal.handling.mode).",
    )
    time: Literal[
        "adaptive",
        "adaptive_time_microseconds",
        "connect",
        "isostring",
        "microseconds",
        "nanoseconds",
    ] = Field(
        default="adaptive",
        description="Form of times: adaptive, adaptive_time_microseconds, connect, "
        "isostring, microseconds or nanoseconds (time.precision.mode).",
    )
    interval: Literal["numeric", "string"] = Field(
        default="numeric",
        description="Form of interval: numeric or string (interval.handling.mode).",
    )
    hstore: Literal["json", "map"] = Field(
        default="json",
        description="Form of hstore: json or map (hstore.handling.mode).",
    )
    binary: Literal["bytes", "base64", "base64-url-safe", "hex"] = Field(
        default="bytes",
        description="Form of bytea: bytes, base64, base64-url-safe or hex "
        "(binary.handling.mode).",
    )
    unknown: bool = Field(
        default=False,
        description="Write columns of types that Debezium does not know, as bytes "
        "(include.unknown.datatypes); else they are left out.",
    )
    unavailable: str = Field(
        default="__debezium_unavailable_value",
        description="Text in the place of a long value that PostgreSQL did not send "
        "(unavailable.value.placeholder).",
    )
    money_digits: int = Field(
        default=2,
        ge=0,
        le=10,
        description="Decimal places of money (money.fraction.digits).",
    )
    adjust: _Adjustment = Field(
        default="none",
        description="Spelling of schema names: none, avro or avro_unicode "
        "(schema.name.adjustment.mode); of encodings avro and protobuf: avro.",
    )
    adjust_fields: _Adjustment = Field(
        default="none",
        description="Spelling of column names: none, avro or avro_unicode "
        "(field.name.adjustment.mode); of encodings avro and protobuf: avro.",
    )
    transaction_block: bool = Field(
        default=False,
        description="Fill the field transaction of each record "
        "(provide.transaction.metadata).",
    )
    heartbeat: OptionalDuration = Field(
        default=0.0,
        description="Interval of the records in __debezium-heartbeat.NAME "
        '(heartbeat.interval.ms); "" for none.',
    )
    position_header: bool = Field(
        default=True,
        description="Write a header with (lsn, seq_id) where no field has it.",
    )
    version: str = Field(
        default="", description="source.version; default: walstream and its version."
    )
    deletes: Literal["tombstone", "rewrite", "rewrite-with-tombstone", "drop"] = Field(
        default="tombstone",
        description="What debezium_row writes for a delete: tombstone, rewrite, "
        "rewrite-with-tombstone or drop (delete.tombstone.handling.mode).",
    )
    add_fields: DistinctNames = Field(
        default=[],
        description="Fields that debezium_row adds to the row, such as op, lsn, "
        "source.ts_ms (add.fields).",
    )
    add_prefix: str = Field(
        default="__",
        description="Prefix of the names of added fields (add.fields.prefix).",
    )


def with_defaults(table: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a sink's table with the defaults of its format and encoding."""
    if table.get("format") not in FORMATS:
        return table
    defaults: dict[str, Any] = dict(_DEFAULTS)
    if table.get("kind") != "kafka":
        del defaults["tombstones"]
    found = {**defaults, **table}
    options = table.get("debezium", {})
    if table.get("encoding") in NARROW and isinstance(options, Mapping):
        found["debezium"] = {**_SPELLED, **options}
    return found
