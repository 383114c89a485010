"""A type of PostgreSQL -> its schema in Connect, and what writes its texts as JSON.

`ConnectTypes.of` makes the choice for each type and mode, once for each column of a
table; what it returns holds a plain function.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Final

from walstream.formats.column_type import ARRAY
from walstream.formats.debezium import (
    binary,
    composite_text,
    connect,
    hstore,
    interval,
    numeric,
    spatial,
    temporal,
)
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.connect_type import (
    BY_NAME,
    BY_OID,
    DATA,
    KAFKA,
    NO_NULL,
    SPARSE,
    TIME,
    VARIABLE,
    ConnectType,
    Render,
    decimal,
)
from walstream.formats.debezium.json_text import json_text
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.pg_type import PgType
from walstream.formats.debezium.unavailable import Unavailable

Lost = Callable[[str], None]

UNKNOWN_LABEL: Final = "an enum's label that the catalog did not have"
_STRING: Final = Schema("string")
_UNBOUNDED: Final = (1 << 31) - 1  # of varbit, as Java's driver has it
_MILLIS: Final = 3  # digits of a second
_MICROS: Final = 6
_TEXT: Final = 25
_BOX: Final = 603
_SHAPES: Final = frozenset({601, 602, 603, 604, 628, 718})
_NO_ARRAYS: Final = frozenset({19, 142, 600, 790, 1186, 1562, 1790})
"""Types whose arrays Debezium has not built: name, xml, point, money, interval …"""
_OPTIONAL_ITEMS: Final = frozenset(
    {
        *(16, 17, 18, 20, 21, 23, 25, 26, 114, 650, 700, 701, 774, 829, 869, 1042),
        *(1043, 1082, 1083, 1114, 1184, 1266, 1560, 1700, 2950, 3802, 3904, 3906),
        *(3908, 3910, 3912, 3926),
    }
)
_OPTIONAL_NAMED: Final = frozenset(
    {"citext", "geography", "geometry", "hstore", "ltree"}
)
# what stands between the items of an array; a comma, but for box and PostGIS
_DELIMITERS: Final = {"geography": ":", "geometry": ":"}


class ConnectTypes:
    """The choices that a sink's options make."""

    def __init__(self, options: DebeziumOptions) -> None:
        self._options = options
        self._placeholder = Unavailable(options.unavailable)
        self._write = binary.FORMS[options.binary]
        self._as_bytes = options.binary == "bytes"
        self._bytes = Schema("bytes") if self._as_bytes else _STRING

    def of(self, pg: PgType, lost: Lost) -> ConnectType | None:
        """Return what a column's values become; None: nothing, it is left out.

        `lost` is called with the reason when a value has no form.
        """
        found = self._scalar(pg, lost)
        if found is None and pg.element is not None:
            return self._array(pg.element, lost)
        if found is None and not pg.name and pg.oid >= ARRAY:
            found = BY_OID[_TEXT]  # of a column that the catalog no longer has
        if found is None and pg.labels:
            found = self._enum(pg.labels, lost)
        if found is None and self._options.unknown:
            shape = spatial.java_shape if pg.oid in _SHAPES else None
            found = ConnectType(self._bytes, binary.opaque(self._write, shape), '""')
        if found is None or found.unavailable or found.schema.type != "string":
            return found
        return replace(found, unavailable=self._placeholder.text)

    def _scalar(self, pg: PgType, lost: Lost) -> ConnectType | None:
        plain = BY_OID.get(pg.oid)
        if plain is None and pg.oid >= _FIRST_NAMED:
            plain = BY_NAME.get(pg.name)
        if plain is not None:
            return plain
        make = _MADE.get(pg.oid)
        if make is None and pg.oid >= _FIRST_NAMED:
            make = _MADE_BY_NAME.get(pg.name)
        return make(self, pg.modifier, lost) if make is not None else None

    def _array(self, element: PgType, lost: Lost) -> ConnectType | None:
        item = None if element.oid in _NO_ARRAYS else self.of(element, lost)
        if item is None:
            return None
        known = element.oid in _OPTIONAL_ITEMS or element.name in _OPTIONAL_NAMED
        of_items = item.schema.as_optional() if known else item.schema
        schema = connect.array(of_items)
        delimiter = ";" if element.oid == _BOX else _DELIMITERS.get(element.name, ",")
        render = composite_text.array(item.render, delimiter)
        if self._options.validated and not of_items.optional:
            render = composite_text.array_without_nulls(
                item.render, delimiter, partial(_filled, item.empty, lost)
            )
        placeholder = self._placeholder.array(
            element.oid,
            as_bytes=self._as_bytes,
            as_days=self._options.time not in {"isostring", "connect"},
        )
        return ConnectType(
            schema, render, "[]", placeholder, item=item, delimiter=delimiter
        )

    def _enum(self, names: tuple[str, ...], lost: Lost) -> ConnectType:
        labels = frozenset(names)

        def render(text: str) -> str:
            if text not in labels:
                lost(UNKNOWN_LABEL)
            return json_text(text)

        schema = connect.text(f"{DATA}Enum", allowed=",".join(names))
        return ConnectType(schema, render, '""')

    def bytea(self, _modifier: int, _lost: Lost) -> ConnectType:
        shown = self._placeholder.base64 if self._as_bytes else self._placeholder.text
        raw = binary.bytea_bytes if self._as_bytes else None
        return ConnectType(self._bytes, binary.bytea(self._write), '""', shown, raw=raw)

    def numeric(self, modifier: int, lost: Lost) -> ConnectType:
        mode = self._options.decimal
        if mode == "double":
            return ConnectType(Schema("double"), numeric.as_double, "0.0")
        scale = numeric.scale_of(modifier) if modifier >= 0 else 0
        if mode == "string":
            empty = f'"{_zero(scale)}"'
            return ConnectType(_STRING, numeric.as_text, empty, bare=numeric.plain_text)
        if modifier < 0:
            render = numeric.variable(lost)
            return ConnectType(VARIABLE, render, render("0"))
        schema = decimal(scale, numeric.precision_of(modifier))
        raw = numeric.unscaled(scale, lost)
        return ConnectType(schema, numeric.fixed(scale, lost), '"AA=="', raw=raw)

    def money(self, _modifier: int, lost: Lost) -> ConnectType:
        digits = self._options.money_digits
        mode = self._options.decimal
        if mode == "string":
            return ConnectType(_STRING, numeric.money_text, f'"{_zero(digits)}"')
        if mode == "double":
            return ConnectType(Schema("double"), numeric.money_double, "0.0")
        render = numeric.money(digits, numeric.fixed(digits, lost))
        return ConnectType(decimal(digits), render, '"AA=="')

    def bits(self, modifier: int, _lost: Lost) -> ConnectType:
        length = modifier if modifier >= 0 else _UNBOUNDED
        if length <= 1:
            return ConnectType(Schema("boolean"), binary.bit, "false")
        named = (("length", str(length)),)
        schema = Schema("bytes", name=f"{DATA}Bits", version=1, parameters=named)
        return ConnectType(schema, binary.bits, '""')

    def date(self, _modifier: int, _lost: Lost) -> ConnectType:
        mode = self._options.time
        if mode == "isostring":
            schema = connect.text(f"{TIME}IsoDate")
            return ConnectType(schema, temporal.date_iso, '"1970-01-01Z"')
        name = f"{KAFKA}Date" if mode == "connect" else f"{TIME}Date"
        return ConnectType(connect.number("int32", name), temporal.date_days, "0")

    def time(self, modifier: int, _lost: Lost) -> ConnectType:
        mode = self._options.time
        if mode == "isostring":
            schema = connect.text(f"{TIME}IsoTime")
            return ConnectType(schema, temporal.time_iso, '"00:00:00Z"')
        if mode == "connect":
            name, render = f"{KAFKA}Time", temporal.time_millis
        elif mode == "adaptive" and 0 <= modifier <= _MILLIS:
            name, render = f"{TIME}Time", temporal.time_millis
        elif mode == "nanoseconds":
            name, render = f"{TIME}NanoTime", temporal.time_nanos
        else:
            name, render = f"{TIME}MicroTime", temporal.time_in_micros
        kind = "int32" if render is temporal.time_millis else "int64"
        return ConnectType(connect.number(kind, name), render, "0")

    def timestamp(self, modifier: int, lost: Lost) -> ConnectType:
        mode = self._options.time
        if mode == "isostring":
            schema = connect.text(f"{TIME}IsoTimestamp")
            empty = '"1970-01-01T00:00:00Z"'
            return ConnectType(schema, temporal.timestamp_iso, empty)
        render: Render = temporal.timestamp_millis
        if mode == "connect":
            name = f"{KAFKA}Timestamp"
        elif mode.startswith("adaptive") and 0 <= modifier <= _MILLIS:
            name = f"{TIME}Timestamp"
        elif mode == "nanoseconds":
            name, render = f"{TIME}NanoTimestamp", temporal.timestamp_nanos(lost)
        else:
            name, render = f"{TIME}MicroTimestamp", temporal.timestamp_micros(lost)
        return ConnectType(connect.number("int64", name), render, "0")

    def timestamptz(self, modifier: int, _lost: Lost) -> ConnectType:
        digits = modifier if modifier >= 0 else _MICROS
        schema = connect.text(f"{TIME}ZonedTimestamp")
        empty = '"1970-01-01T00:00:00Z"'
        bare = temporal.zoned_timestamp(digits, "")
        return ConnectType(schema, temporal.zoned_timestamp(digits), empty, bare=bare)

    def interval(self, _modifier: int, lost: Lost) -> ConnectType:
        if self._options.interval == "string":
            schema = connect.text(f"{TIME}Interval")
            return ConnectType(schema, interval.iso(lost), '"P0Y0M0DT0H0M0S"')
        schema = connect.number("int64", f"{TIME}MicroDuration")
        return ConnectType(schema, interval.numeric(lost), "0")

    def hstore(self, _modifier: int, _lost: Lost) -> ConnectType:
        pair = self._placeholder.pair
        if self._options.hstore == "map":
            return ConnectType(hstore.MAP, hstore.as_map, "{}", pair)
        schema = connect.text(f"{DATA}Json")
        return ConnectType(schema, hstore.as_json, '"{}"', json_text(pair))

    def sparsevec(self, _modifier: int, lost: Lost) -> ConnectType:
        empty = '{"dimensions":0,"vector":[]}'
        render = spatial.sparse_vector(lost, as_objects=self._options.validated)
        return ConnectType(SPARSE, render, empty)


def _filled(empty: str, lost: Lost) -> str:
    """Count a null that an item cannot be, and return what stands for it."""
    lost(NO_NULL)
    return empty


def _zero(scale: int) -> str:
    return f"0.{'0' * scale}" if scale > 0 else "0"


_FIRST_NAMED: Final = 10_000  # oids below are the same everywhere
_Make = Callable[[ConnectTypes, int, Lost], ConnectType]
_MADE: Final[dict[int, _Make]] = {
    17: ConnectTypes.bytea,
    790: ConnectTypes.money,
    1082: ConnectTypes.date,
    1083: ConnectTypes.time,
    1114: ConnectTypes.timestamp,
    1184: ConnectTypes.timestamptz,
    1186: ConnectTypes.interval,
    1560: ConnectTypes.bits,
    1562: ConnectTypes.bits,
    1700: ConnectTypes.numeric,
}
_MADE_BY_NAME: Final[dict[str, _Make]] = {
    "hstore": ConnectTypes.hstore,
    "sparsevec": ConnectTypes.sparsevec,
}
