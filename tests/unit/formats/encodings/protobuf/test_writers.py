"""A text of each type, in protobuf as in JSON; what JSON has no form for is null."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.oracles.avro_values import comparable
from tests.support.oracles.protobuf_values import meant, read
from tests.unit.formats.debezium.test_types import made
from walstream.formats.debezium.connect import struct
from walstream.formats.debezium.connect_type import ConnectType
from walstream.formats.debezium.numeric import NO_NUMBER
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.pg_type import PgType
from walstream.formats.debezium.types import ConnectTypes
from walstream.formats.encodings.protobuf import number, proto_shape
from walstream.formats.encodings.protobuf.primitive import tag
from walstream.formats.encodings.protobuf.primitive import text as primitive_text
from walstream.formats.encodings.protobuf.writers import Write, int64, writer


def of(found: ConnectType) -> tuple[Any, Any, Write]:
    """Return schema and text of a message of one field of a type, and its writer."""
    schema = struct("a.N", ("x", replace(found.schema, optional=True)))
    file = number(proto_shape(schema), [])
    (field,) = file.first.fields
    return schema, file.text(), writer(found, field.type, [file.first])


def said(found: ConnectType, text: str) -> Any:
    """Return what Google's library reads of a text."""
    schema, proto, write = of(found)
    written = write(text)
    assert written is not None
    kinds = {"double": 1, "float": 5, "string": 2, "bytes": 2}
    kind = proto.partition("optional ")[2].partition(" ")[0]
    wire = kinds.get(kind, 0 if kind in {"int32", "int64", "bool"} else 2)
    return read(schema, proto, tag(1, wire) + written)["x"]


@pytest.mark.parametrize(
    ("oid", "modifier", "text"),
    [
        (21, -1, "-32768"),
        (23, -1, "2147483647"),
        (23, -1, "0"),
        (1082, -1, "5874897-12-31"),
        (1083, 3, "24:00:00"),
        (701, -1, "NaN"),
        (700, -1, "-Infinity"),
        (1700, -1, "-12.50"),
        (1700, -1, "0.000"),
        (1700, -1, "128"),
        (1700, 327_686, "-0.01"),
        (1700, 327_686, "128.00"),
        (1700, 327_686, "7"),
        (1700, 327_686, "007.5"),
        (1700, 198_658, "1200"),
        (790, -1, "-$1,234.56"),
        (17, -1, "\\x00ff"),
        (1560, 3, "100"),
        (1266, -1, "01:02:03+04"),
        (1231, -1, "{1.5,NULL}"),
        (1231, -1, "{}"),
        (1007, -1, "{1,NULL,-1}"),
        (1009, -1, '{a,"",NULL}'),
        (1022, -1, "{NaN,-0}"),
        (1000, -1, "{t,NULL,f}"),
    ],
)
def test_it_says_what_json_says(oid: int, modifier: int, text: str) -> None:
    found = made(oid, "", modifier)
    shown = json.loads(found.render(text))
    assert said(found, text) == comparable(meant(found.schema, shown))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *(("9" * 5000, "9" * 5000), ("0." + "1" * 16_383, "0." + "1" * 16_383)),
        (f"00{'9' * 5000}", "9" * 5000),
    ],
)
def test_a_number_may_have_more_digits_than_an_int_of_python(
    text: str, shown: str
) -> None:
    _, _, write = of(made(1700, "", -1))
    assert write(text) == primitive_text(shown)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("1.500", "1.500"), ("-1.50", "-1.50"), ("0", "0"), ("-0.0", "-0.0")],
)
def test_digits_are_those_of_postgresql(text: str, shown: str) -> None:
    _, _, write = of(made(1700))
    assert write(text) == bytes([len(shown)]) + shown.encode()


@pytest.mark.parametrize(
    ("oid", "text"),
    [
        *(
            (20, "x"),
            (20, "9223372036854775808"),
            (20, "1_0"),
            (20, "٣"),
            (21, "32768"),
        ),
        *((23, "-2147483649"), (16, "true"), (700, "1e300"), (701, "x"), (17, "00")),
        *((1700, "x"), (1082, "x"), (600, "x"), (1007, "{1"), (2950, "\ud800")),
        *((1700, "."), (1700, "1."), (1700, "٣")),
    ],
)
def test_what_is_no_text_of_the_type_is_refused_or_read_as_json_reads_it(
    oid: int, text: str
) -> None:
    _, _, write = of(found := made(oid))
    try:
        shown = json.loads(found.render(text))
    except ValueError:
        shown = None
    try:
        written = write(text)
    except ValueError:
        return
    assert shown is not None
    assert written is not None
    assert oid == 1700


def test_the_most_frequent_types_have_functions_of_their_own() -> None:
    assert of(made(20))[2] is int64
    assert of(made(25))[2] is of(made(1043))[2]


def test_a_number_that_is_none_is_null_and_counted() -> None:
    lost: list[str] = []
    for pg in (PgType(1700), PgType(1700, "", 327_686)):
        found = ConnectTypes(DebeziumOptions("app")).of(pg, lost.append)
        assert found is not None
        assert of(found)[2]("NaN") is None
    assert lost == [NO_NUMBER] * 2


def test_a_label_of_an_array_may_be_null() -> None:
    """In Avro it cannot: of labels an item is never optional in Debezium's schemas."""
    element = PgType(16500, "mood", -1, ("sad", "ok"))
    pg = PgType(16501, "_mood", -1, (), element)
    found = ConnectTypes(DebeziumOptions("app")).of(pg, lambda _: None)
    assert found is not None
    assert said(found, "{sad,NULL}") == ["sad", None]
