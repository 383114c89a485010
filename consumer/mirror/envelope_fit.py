"""Fit of Debezium's records into a target's table: the types that come back.

A record's schema tells how a value was written, and the target how it is kept: one that
lost digits, months or the offset of its unit on the way is refused, with what cures it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from consumer.op import EnvelopeOp
from consumer.pg_catalog import pinned
from consumer.registry import NO_NULL
from walstream.formats.debezium.connect_value import text_of

Connection = psycopg.Connection[Any]
Convert = Callable[[str], str | None]

# what is written of a domain is a value of its base, with the domain's modifier
_TYPES: Final = """
WITH RECURSIVE base (num, type, modifier, dimensions) AS (
  SELECT a.attnum, a.atttypid, a.atttypmod, a.attndims::int FROM pg_attribute a
    JOIN pg_class c ON c.oid = a.attrelid JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE n.nspname = %(schema)s AND c.relname = %(name)s AND a.attnum > 0
     AND NOT a.attisdropped AND a.attgenerated = ''
  UNION ALL
  SELECT b.num, d.typbasetype,
         CASE WHEN d.typtypmod = -1 THEN b.modifier ELSE d.typtypmod END,
         greatest(b.dimensions, d.typndims)
    FROM base b JOIN pg_type d ON d.oid = b.type WHERE d.typtype = 'd')
SELECT a.attname, format_type(a.atttypid, a.atttypmod), b.modifier, b.dimensions,
       CASE WHEN t.typcategory = 'A' AND t.typelem <> 0 THEN 'array'
            WHEN t.typtype = 'e' THEN 'enum' WHEN t.oid::int8 >= %(own)s
             AND t.typname <> ALL(%(extensions)s) THEN 'other'
            WHEN t.typtype = 'r' THEN 'range' ELSE t.typname END,
       CASE WHEN e.oid::int8 < %(own)s THEN e.typname END, NOT a.attnotnull
  FROM base b JOIN pg_type t ON t.oid = b.type AND t.typtype <> 'd'
  JOIN pg_class c ON c.relname = %(name)s
  JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = %(schema)s
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = b.num
  LEFT JOIN pg_type e ON e.oid = t.typelem
"""
_OWN_OIDS: Final = 10_000  # from here on oids differ from database to database
_EXTENSIONS: Final = ["citext", "hstore", "isbn", "ltree"]

_DATA: Final = "io.debezium.data."
_TIME: Final = "io.debezium.time."
_KAFKA: Final = "org.apache.kafka.connect.data."
_INTEGERS: Final = frozenset({"int16", "int32", "int64"})
_TEXT: Final = frozenset({"string"})
_JSON: Final = frozenset({f"{_DATA}Json"})
_DATES: Final = frozenset({f"{_TIME}Date", f"{_KAFKA}Date", f"{_TIME}IsoDate"})
_ZONED: Final = f"{_TIME}ZonedTimestamp"
_DECIMAL: Final = f"{_KAFKA}Decimal"
_FORMS: Final[dict[str, frozenset[str]]] = {
    "bool": frozenset({"boolean"}),
    **dict.fromkeys(("int2", "int4", "int8", "oid"), _INTEGERS),
    **dict.fromkeys(("float4", "float8"), frozenset({"float", "double"})),
    "numeric": frozenset({_DECIMAL, f"{_DATA}VariableScaleDecimal", "string"}),
    **dict.fromkeys(("text", "varchar", "bpchar", "char", "name", "citext"), _TEXT),
    **dict.fromkeys(("inet", "cidr", "macaddr", "macaddr8", "isbn", "range"), _TEXT),
    "enum": frozenset({f"{_DATA}Enum"}),
    "uuid": frozenset({f"{_DATA}Uuid"}),
    **dict.fromkeys(("json", "jsonb"), _JSON),
    "xml": frozenset({f"{_DATA}Xml"}),
    "tsvector": frozenset({f"{_DATA}Tsvector"}),
    "ltree": frozenset({f"{_DATA}Ltree"}),
    "bytea": frozenset({"bytes"}),
    "bit": frozenset({f"{_DATA}Bits", "boolean"}),
    "date": _DATES,
    "time": frozenset({f"{_TIME}MicroTime", f"{_TIME}NanoTime", f"{_TIME}IsoTime"}),
    # in nanoseconds, what lies behind the year 2262 is written as infinity
    "timestamp": frozenset({f"{_TIME}MicroTimestamp", f"{_TIME}IsoTimestamp"}),
    "timetz": frozenset({f"{_TIME}ZonedTime"}),
    "timestamptz": frozenset({_ZONED}),
    "interval": frozenset({f"{_TIME}Interval"}),
    "hstore": frozenset({"map"}),
    "point": frozenset({f"{_DATA}geometry.Point"}),
}
"""The schemas, by type, of which the value comes back."""
_MILLIS: Final = {
    "time": frozenset({f"{_TIME}Time", f"{_KAFKA}Time"}),
    "timestamp": frozenset({f"{_TIME}Timestamp", f"{_KAFKA}Timestamp"}),
}
_MILLIS_DIGITS: Final = 3
# only of these does an unchanged TOAST value not look like NULL
_ARRAYS: Final[dict[str, frozenset[str]]] = {
    **{name: _FORMS[name] for name in ("text", "varchar", "bpchar", "json", "jsonb")},
    **{name: _FORMS[name] for name in ("int4", "int8", "uuid", "bytea")},
    "date": frozenset({f"{_TIME}Date"}),
}
_ITEMS: Final = "array of "
_LONGEST_BITS: Final = 160  # as many are never stored outside of the row
_UNTOLD: Final = frozenset(
    {
        *("numeric", "bytea", "bit", "time", "timestamp", "interval", "hstore"),
        "point",
    }
)
"""Types whose values say nothing of their form: without schemas they are refused."""
# of others a key's row is found by its value, but a row without a key by its text
_PRINTED_OTHERWISE: Final = frozenset(
    {"float4", "interval", "hstore", "timetz", "point", "array"}
)
_TIMES: Final = frozenset({"date", "time", "timestamp", "timestamptz"})
_NUMBER: Final = re.compile(r"-?[0-9]+")
_CURES: Final = {
    "numeric": 'write it with decimal = "precise" or "string" (decimal.handling.mode)',
    "bytea": 'write it with binary = "bytes" (binary.handling.mode)',
    "interval": 'write it with interval = "string" (interval.handling.mode)',
    "hstore": 'write it with hstore = "map" (hstore.handling.mode)',
    "time": 'write it with time = "adaptive" or "isostring" (time.precision.mode)',
    "timestamp": 'write it with time = "adaptive" or "isostring" (time.precision.mode)',
}
_SCHEMAS: Final = "write the topic with schemas = true (value.converter.schemas.enable)"
_NO_NULL: Final = " without null"
_NULLABLE: Final = (
    "write the topic with value.converter.optional.for.nullables=true, or let the"
    " target's column be NOT NULL where the source's is"
)
_NAMED: Final = (
    'write the topic with encoding = "avro" or "json_schema", or with a registry that'
    " keeps the comments of Protobuf"
)
_OTHER: Final = 'mirror the table from a topic of format "op"'


class ColumnType(NamedTuple):
    """The type of a target's column; of a domain its base."""

    shown: str
    modifier: int
    dimensions: int
    kind: str  # a name of PostgreSQL, or array, enum, range, other
    element: str | None
    nullable: bool = True


class Misfit(NamedTuple):
    """Reason why a column cannot be mirrored, and what cures it."""

    what: str
    hint: str


@dataclass(slots=True)
class Fit:
    """Outcome for records of one shape: a reason to stop, or what is to be done."""

    misfit: Misfit | None = None
    conversions: dict[str, Convert] = field(default_factory=dict)
    printed: bool = True  # are the texts those that PostgreSQL prints?


def load(connection: Connection, schema: str, name: str) -> dict[str, ColumnType]:
    """Read the types of a table's columns, without generated ones."""
    asked = {
        "schema": schema,
        "name": name,
        "own": _OWN_OIDS,
        "extensions": _EXTENSIONS,
    }
    with pinned(connection), connection.cursor(row_factory=tuple_row) as cursor:
        found = cursor.execute(_TYPES, asked).fetchall()
    return {column: ColumnType(*told) for column, *told in found}


def forms(op: EnvelopeOp) -> tuple[str, ...] | None:
    """Return the form of each column's values, as the record's schema names it."""
    if op.schemas is None:
        return None
    return tuple(_form(op.schemas.get(name, {})) for name in op.table.columns)


def _form(schema: Mapping[str, object]) -> str:
    if schema.get(NO_NULL) and not schema.get("optional"):
        return _form({**schema, NO_NULL: False}) + _NO_NULL
    kind, items = schema.get("type"), schema.get("items")
    if kind == "array" and "name" not in schema and isinstance(items, dict):
        return f"{_ITEMS}{_form(items)}"
    return str(schema.get("name") or kind)


def fit(
    types: Mapping[str, ColumnType],
    columns: tuple[str, ...],
    written: tuple[str, ...] | None,
) -> Fit:
    """Compare a table with the forms of a record's values."""
    made = Fit()
    for name, kind in types.items():
        if name not in columns and not _has_form(kind):
            made.misfit = _left_out(name, kind)
            return made
    for index, name in enumerate(columns):
        if name not in types:
            continue  # a generated one: the target computes it
        kind, form = types[name], None if written is None else written[index]
        if form is not None and form.endswith(_NO_NULL):
            if kind.nullable:
                made.misfit = _without_null(name, kind)
                return made
            form = form.removesuffix(_NO_NULL)
        made.misfit = _misfit(name, kind, form)
        if made.misfit is not None:
            return made
        convert = _conversion(kind, form)
        if convert is not None:
            made.conversions[name] = convert
        fixed = kind.kind != "numeric" or form == _DECIMAL
        made.printed = made.printed and fixed and kind.kind not in _PRINTED_OTHERWISE
    return made


def unit_fit(types: Mapping[str, ColumnType], columns: tuple[str, ...]) -> Fit:
    """Look at columns of an op whose schema lacks what Connect says of a type."""
    for name in columns:
        kind = types.get(name)
        if kind is None:
            continue
        if (kind.element if kind.kind == "array" else kind.kind) in _TIMES:
            what = f"column {name} ({kind.shown}): in its schema a number has no unit"
            return Fit(Misfit(f"{what}, since the registry keeps no comments", _NAMED))
    return Fit()


def _misfit(name: str, kind: ColumnType, form: str | None) -> Misfit | None:
    what = f"column {name} ({kind.shown}): "
    if not _has_form(kind):
        return _left_out(name, kind)
    if form is None:
        told = kind.element if kind.kind == "array" else kind.kind
        if told in _UNTOLD or (kind.kind == "array" and told == "date"):
            return Misfit(f"{what}without a schema its values have no unit", _SCHEMAS)
        return None
    if form in _accepted(kind):
        return None
    cure = _CURES.get(kind.element or kind.kind, _OTHER)
    return Misfit(f"{what}its value does not come back from {form}", cure)


def _accepted(kind: ColumnType) -> frozenset[str]:
    if kind.kind == "array":
        return frozenset(f"{_ITEMS}{one}" for one in _ARRAYS[kind.element or ""])
    accepted = _FORMS[kind.kind]
    if 0 <= kind.modifier <= _MILLIS_DIGITS:
        accepted |= _MILLIS.get(kind.kind, frozenset())
    return accepted


def _has_form(kind: ColumnType) -> bool:
    if kind.kind == "array":
        return kind.element in _ARRAYS and kind.dimensions <= 1
    if kind.kind == "bit":
        return kind.modifier <= _LONGEST_BITS
    return kind.kind in _FORMS


def _without_null(name: str, kind: ColumnType) -> Misfit:
    what = f"column {name} ({kind.shown}): its records have an empty value for NULL"
    return Misfit(what, _NULLABLE)


def _left_out(name: str, kind: ColumnType) -> Misfit:
    what = f"column {name} ({kind.shown}): Debezium's records lack its values, or part"
    return Misfit(what, f"{_OTHER}, or drop the column in the target")


def _conversion(kind: ColumnType, form: str | None) -> Convert | None:
    if kind.kind == "bit" and form == "boolean":
        return lambda text: "1" if text == "t" else "0"
    if form is not None:
        return None
    if kind.kind == "date":
        return _date
    if kind.kind == "timestamptz":
        return lambda text: text_of(text, {"name": _ZONED})
    return None


def _date(text: str) -> str | None:
    """Read days since 1970, which all but ISO dates are, or such a date."""
    if _NUMBER.fullmatch(text):
        return text_of(int(text), {"name": f"{_TIME}Date"})
    return text_of(text, {"name": f"{_TIME}IsoDate"})
