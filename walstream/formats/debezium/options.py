"""Options of the formats, each named by what Debezium's own configuration calls it."""

from dataclasses import dataclass
from typing import Final, Literal

Decimal = Literal["precise", "string", "double"]
Time = Literal[
    "adaptive",
    "adaptive_time_microseconds",
    "connect",
    "isostring",
    "microseconds",
    "nanoseconds",
]
Interval = Literal["numeric", "string"]
Hstore = Literal["json", "map"]
Binary = Literal["bytes", "base64", "base64-url-safe", "hex"]
Adjustment = Literal["none", "avro", "avro_unicode"]
Deletes = Literal["tombstone", "rewrite", "rewrite-with-tombstone", "drop"]

UNAVAILABLE: Final = "__debezium_unavailable_value"
CONNECTOR: Final = "postgresql"


@dataclass(frozen=True, slots=True)
class DebeziumOptions:
    """The options of one sink."""

    name: str  # topic.prefix
    database: str = ""  # the server's name of it
    schemas: bool = False  # schemas.enable, of keys and values
    decimal: Decimal = "precise"  # decimal.handling.mode
    time: Time = "adaptive"  # time.precision.mode
    interval: Interval = "numeric"  # interval.handling.mode
    hstore: Hstore = "json"  # hstore.handling.mode
    binary: Binary = "bytes"  # binary.handling.mode
    unknown: bool = False  # include.unknown.datatypes
    unavailable: str = UNAVAILABLE  # unavailable.value.placeholder
    money_digits: int = 2  # money.fraction.digits
    adjust: Adjustment = "none"  # schema.name.adjustment.mode
    adjust_fields: Adjustment = "none"  # field.name.adjustment.mode
    transaction_block: bool = False  # provide.transaction.metadata
    position_header: bool = True
    version: str = "walstream"  # source.version
    deletes: Deletes = "tombstone"  # delete.tombstone.handling.mode
    add_fields: tuple[str, ...] = ()  # add.fields
    add_prefix: str = "__"  # add.fields.prefix
    all_optional: bool = False  # may every column be null, whatever the catalog says?
    validated: bool = False
    """Are values those of their schema, where JsonConverter writes what it would not
    read: nulls of items that have none, and maps as lists of pairs?"""
