"""Types whose values become the same whatever the options; `types` has the others."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from walstream.formats.debezium import connect, float_text, spatial, temporal
from walstream.formats.debezium.connect import Schema
from walstream.formats.debezium.json_text import json_text

Render = Callable[[str], str]
RawBytes = Callable[[str], bytes | None]
"""None: the value has no form, which is counted."""

DATA: Final = "io.debezium.data."
TIME: Final = "io.debezium.time."
KAFKA: Final = "org.apache.kafka.connect.data."
NO_NULL: Final = "a null in an array whose items have none in their schema"


@dataclass(frozen=True, slots=True)
class ConnectType:
    """The schema of a column's values in Connect, and the function that writes them."""

    schema: Schema  # not optional: its column decides that
    render: Render  # raises ValueError for what is no text of the type
    empty: str  # JSON of a value that is NOT NULL and was not sent
    unavailable: str | None = None  # JSON of an unchanged TOAST value; None: no form
    text: bool = False  # is each value the JSON text of just PostgreSQL's text?
    bare: Render | None = None  # what `render` writes in quotes, if that is all it does
    raw: "RawBytes | None" = None  # of bytes: what `render` writes in base64
    item: "ConnectType | None" = None  # of an array of PostgreSQL's
    delimiter: str = ","


def integer(text: str) -> str:
    """Write an integer unchanged."""
    if text.isdigit() and text.isascii():  # most of them, without a slice
        return text
    if not text.isdecimal() and not (text[:1] == "-" and text[1:].isdecimal()):
        raise ValueError("not an integer")
    if not text.isascii():  # digits of another script
        raise ValueError("not an integer")
    return text


def boolean(text: str) -> str:
    """Write a boolean."""
    if text == "t":
        return "true"
    if text == "f":
        return "false"
    raise ValueError("not a boolean")


def decimal(scale: int, precision: int | None = None) -> Schema:
    """Return the schema of Connect's Decimal."""
    parameters = [("scale", str(scale))]
    if precision is not None:
        parameters.append(("connect.decimal.precision", str(precision)))
    return Schema(
        "bytes", name=f"{KAFKA}Decimal", version=1, parameters=tuple(parameters)
    )


def _named_text(name: str = "") -> ConnectType:
    return ConnectType(connect.text(name), json_text, '""', text=True)


def _wkb(kind: str, *, optional: bool) -> ConnectType:
    fields = (("wkb", Schema("bytes")), ("srid", Schema("int32", optional=True)))
    schema = connect.struct(f"{DATA}geometry.{kind}", *fields)
    empty = f'{{"wkb":"{spatial.EMPTY_WKB}","srid":null}}'
    schema = replace(schema, doc=kind, optional=optional)
    return ConnectType(schema, spatial.geometry, empty)


def _point() -> ConnectType:
    schema = connect.struct(
        f"{DATA}geometry.Point",
        ("x", Schema("double")),
        ("y", Schema("double")),
        ("wkb", Schema("bytes", optional=True)),
        ("srid", Schema("int32", optional=True)),
    )
    schema = replace(schema, doc="Geometry (POINT)")
    return ConnectType(schema, spatial.point, spatial.point("(0,0)"))


def _vector(name: str, item: str, render: Render) -> ConnectType:
    schema = replace(connect.array(Schema(item)), name=f"{DATA}{name}", version=1)
    return ConnectType(schema, render, "[]")


VARIABLE: Final = replace(
    connect.struct(
        f"{DATA}VariableScaleDecimal",
        ("scale", Schema("int32")),
        ("value", Schema("bytes")),
    ),
    doc="Variable scaled decimal",
)
SPARSE: Final = replace(
    connect.struct(
        f"{DATA}SparseDoubleVector",
        ("dimensions", Schema("int16")),
        ("vector", Schema("map", keys=Schema("int16"), values=Schema("double"))),
    ),
    doc="Sparse double vector",
)
_STRING: Final = _named_text()
_JSON: Final = _named_text(f"{DATA}Json")
_INT64: Final = ConnectType(Schema("int64"), integer, "0")

BY_OID: Final[dict[int, ConnectType]] = {
    16: ConnectType(Schema("boolean"), boolean, "false"),
    18: _STRING,  # "char"
    19: _STRING,  # name
    20: _INT64,  # int8
    21: ConnectType(Schema("int16"), integer, "0"),
    23: ConnectType(Schema("int32"), integer, "0"),
    25: _STRING,  # text
    26: _INT64,  # oid
    114: _JSON,
    142: _named_text(f"{DATA}Xml"),
    600: _point(),
    650: _STRING,  # cidr
    700: ConnectType(Schema("float"), float_text.float4, "0.0"),
    701: ConnectType(Schema("double"), float_text.float8, "0.0"),
    774: _STRING,  # macaddr8
    829: _STRING,  # macaddr
    869: _STRING,  # inet
    1042: _STRING,  # bpchar
    1043: _STRING,  # varchar
    1266: ConnectType(
        connect.text(f"{TIME}ZonedTime"), temporal.zoned_time, '"00:00:00Z"'
    ),
    2950: _named_text(f"{DATA}Uuid"),
    3614: _named_text(f"{DATA}Tsvector"),
    3802: _JSON,
    3904: _STRING,  # int4range
    3906: _STRING,  # numrange
    3908: _STRING,  # tsrange
    3910: _STRING,  # tstzrange
    3912: _STRING,  # daterange
    3926: _STRING,  # int8range
}
BY_NAME: Final[dict[str, ConnectType]] = {
    "citext": _STRING,
    "geography": _wkb("Geography", optional=False),
    "geometry": _wkb("Geometry", optional=True),
    "halfvec": _vector("FloatVector", "float", spatial.half_vector),
    "isbn": _STRING,
    "ltree": _named_text(f"{DATA}Ltree"),
    "vector": _vector("DoubleVector", "double", spatial.vector),
}
"""Types of extensions, whose oids differ from database to database."""
