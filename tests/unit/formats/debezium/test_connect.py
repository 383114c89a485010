"""Schemas as Kafka Connect's JsonConverter wrote them, recorded from it."""

from walstream.formats.debezium.connect import Schema, array, number, struct, text


def test_a_map_and_an_array_name_what_is_in_them() -> None:
    values = Schema("map", keys=Schema("int16"), values=Schema("double"))
    assert values.as_optional().json() == (
        '{"type":"map","keys":{"type":"int16","optional":false},'
        '"values":{"type":"double","optional":false},"optional":true}'
    )
    inner = array(Schema("double", optional=True))
    assert array(inner).json() == (
        '{"type":"array","items":{"type":"array","items":{"type":"double",'
        '"optional":true},"optional":false},"optional":false}'
    )


def test_what_describes_a_schema_has_its_order() -> None:
    schema = Schema(
        "bytes",
        optional=True,
        name="org.apache.kafka.connect.data.Decimal",
        version=1,
        doc="dd",
        parameters=(("scale", "2"), ("connect.decimal.precision", "5")),
        default='"AJY="',
    )
    assert schema.json() == (
        '{"type":"bytes","optional":true,"name":"org.apache.kafka.connect.data.Decimal"'
        ',"version":1,"doc":"dd","parameters":{"scale":"2",'
        '"connect.decimal.precision":"5"},"default":"AJY="}'
    )


def test_a_field_of_a_struct_has_its_name_last() -> None:
    schema = struct("k", ("e\U0001f600\x1f", text()), ("d", number("int32", "n")))
    assert schema.json() == (
        '{"type":"struct","fields":[{"type":"string","optional":false,'
        '"field":"e\\uD83D\\uDE00\\u001F"},{"type":"int32","optional":false,"name":"n",'
        '"version":1,"field":"d"}],"optional":false,"name":"k","version":1}'
    )


def test_a_struct_without_fields_has_an_empty_list() -> None:
    assert Schema("struct").json() == '{"type":"struct","fields":[],"optional":false}'


def test_an_optional_schema_is_the_same() -> None:
    schema = text("n").as_optional()
    assert schema.as_optional() is schema
