"""A value of JSON by its schema."""

from typing import Any

import pytest

from walstream.formats.debezium.connect import Schema, array, struct, text
from walstream.formats.encodings.avro import tree

_FIELDS = struct("a.N", ("x", Schema("int32")), ("y", text().as_optional()))


@pytest.mark.parametrize(
    ("schema", "payload", "written"),
    [
        (text(), '"x"', b"\x02x"),
        (Schema("boolean"), "true", b"\x01"),
        (Schema("int16"), "-1", b"\x01"),
        (Schema("bytes"), '"AQI="', b"\x04\x01\x02"),
        (Schema("double"), '"-Infinity"', b"\0\0\0\0\0\0\xf0\xff"),
        (Schema("float"), "1.5", b"\0\0\xc0\x3f"),
        (_FIELDS, '{"y":null,"x":1}', b"\x02\x00"),
        (_FIELDS.as_optional(), '{"x":1,"y":"z"}', b"\x02\x02\x02\x02z"),
        (_FIELDS.as_optional(), "null", b"\x00"),
        (text().as_optional().with_default('"d"'), "null", b"\x02"),
        (text().as_optional().with_default('"d"'), '"x"', b"\x00\x02x"),
        (text().with_default('"d"'), '"x"', b"\x02x"),
        (array(Schema("int32")), "[]", b"\x00"),
        (array(Schema("int32", optional=True)), "[1,null]", b"\x04\x02\x02\x00\x00"),
        (Schema("map", keys=text(), values=text()), '{"a":"b"}', b"\x02\x02a\x02b\x00"),
        (
            Schema("map", keys=Schema("int16"), values=Schema("int16")),
            "[[1,2]]",
            b"\x02\x02\x04\x00",
        ),
    ],
)
def test_a_value_is_written_by_its_schema(
    schema: Schema, payload: str, written: bytes
) -> None:
    assert tree.document(schema, payload) == written


@pytest.mark.parametrize(
    ("schema", "payload"),
    [
        (text(), "null"),
        (Schema("int16"), "32768"),
        (Schema("int32"), "-2147483649"),
        (Schema("float"), "1e300"),
        (Schema("other"), "[]"),
        (text(), "x"),
    ],
)
def test_another_types_value_is_refused(schema: Schema, payload: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        tree.document(schema, payload)


def test_a_writer_that_is_made_once_writes_the_same() -> None:
    inner = struct("I", ("f", Schema("double")), ("b", Schema("bytes")))
    schema = struct(
        "S",
        ("n", Schema("int16")),
        ("t", Schema("string", optional=True)),
        ("a", array(Schema("int32", optional=True)).as_optional()),
        ("m", Schema("map", keys=Schema("string"), values=Schema("boolean"))),
        ("i", inner.as_optional()),
    )
    write = tree.writer_of(schema)
    values: tuple[dict[str, Any], ...] = (
        {"n": -1, "t": None, "a": None, "m": {}, "i": None},
        {
            "n": 300,
            "t": "é",
            "a": [1, None],
            "m": {"k": True},
            "i": {"f": 1.5, "b": ""},
        },
    )
    for value in values:
        assert write(value) == tree.value_bytes(schema, value)
