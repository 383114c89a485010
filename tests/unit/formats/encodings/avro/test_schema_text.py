"""Avro schemas are, letter by letter, those of Apicurio's converter."""

from functools import cache
from typing import Any

import pytest

from tests.support.oracles import debezium, debezium_avro, every_type
from walstream.errors import ConfigError
from walstream.formats.debezium import (
    EnvelopeEncoder,
    HeartbeatRecords,
    MessageEncoder,
    SinkTurn,
    TransactionRecords,
)
from walstream.formats.debezium.connect import Schema, array, struct, text
from walstream.formats.encodings.avro import avro_schema

_NAME = "a.b.N"


@cache
def _converted() -> dict[str, Any]:
    return debezium_avro.converted()


def _told(topic: str) -> list[str | None]:
    """Return the schemas of key and value of a topic's first record."""
    schemas = _converted()["schemas"]
    return [one and schemas[one[0]] for one in _converted()["records"][topic][0]]


@pytest.mark.parametrize("mode", range(every_type.ORACLE_MODES))
@pytest.mark.parametrize("number", range(3))
def test_each_type_in_each_mode_is_that_of_the_converter(
    mode: int, number: int
) -> None:
    table = every_type.tables()[number]
    made = EnvelopeEncoder(table, every_type.options(mode), SinkTurn())
    assert _told(f"m{mode}.public.{table.name}") == [None, avro_schema(made.schema)]


def test_those_of_other_records_are() -> None:
    options = debezium.VARIANTS["dbz"]
    turn = SinkTurn()
    pairs = {
        "__debezium-heartbeat.dbz": HeartbeatRecords(options).schemas,
        "dbz.message": MessageEncoder(options, turn).schemas,
        "dbz.transaction": TransactionRecords(options).schemas,
    }
    writer = debezium.Writer(options)
    list(writer.records())
    made = {key.schema.name: (key, one) for one, key in writer.encoders.values()}
    key, value = made["dbz.public.full_.Key"]
    pairs["dbz.public.full_"] = key.schema, value.schema
    for topic, schemas in pairs.items():
        assert _told(topic) == [avro_schema(one) for one in schemas]
    _, value = made["dbz.public.nopk.Key"]
    assert _told("dbz.public.nopk") == [None, avro_schema(value.schema)]


def test_a_name_is_told_once_and_shortly_within_its_namespace() -> None:
    inner = struct("a.b.I", ("v", Schema("int32")), version=0)
    other = struct("c.O", ("again", inner), version=0)
    whole = struct(_NAME, ("x", inner), ("y", inner), ("o", other), version=0)
    assert avro_schema(whole) == (
        '{"type":"record","name":"N","namespace":"a.b","fields":[{"name":"x","type":'
        '{"type":"record","name":"I","fields":[{"name":"v","type":"int"}],'
        '"connect.name":"a.b.I"}},{"name":"y","type":"I"},{"name":"o","type":'
        '{"type":"record","name":"O","namespace":"c","fields":'
        '[{"name":"again","type":"a.b.I"}],"connect.name":"c.O"}}],'
        '"connect.name":"a.b.N"}'
    )


def test_a_default_turns_the_union() -> None:
    field = text().as_optional().with_default('"d\\u0001\\"\\uD83D\\uDE00"')
    assert avro_schema(struct(_NAME, ("x", field), version=0)).count(
        '[{"type":"string","connect.default":"d\\u0001\\"\U0001f600"},"null"],'
        '"default":"d\\u0001\\"\U0001f600"}'
    )


def test_a_default_that_is_no_number_is_none() -> None:
    field = Schema("double", optional=True, default='"NaN"')
    shown = avro_schema(struct(_NAME, ("x", field), version=0))
    assert '{"name":"x","type":["null","double"],"default":null}' in shown
    needed = Schema("double", default='"NaN"')
    shown = avro_schema(struct(_NAME, ("x", needed), version=0))
    assert '{"name":"x","type":"double"}' in shown


def test_pairs_of_a_map_with_numbers_are_told_once() -> None:
    pairs = Schema("map", keys=Schema("int32"), values=Schema("double"))
    shown = avro_schema(struct(_NAME, ("x", pairs), ("y", array(pairs)), version=0))
    assert shown.count('"name":"MapEntry"') == 1
    assert '"items":"io.confluent.connect.avro.MapEntry"' in shown


def test_a_field_that_avro_has_no_name_for_is_refused_with_a_way_out() -> None:
    with pytest.raises(ConfigError, match="'B c'") as caught:
        avro_schema(struct(_NAME, ("B c", text())))
    assert 'adjust_fields = "avro"' in (caught.value.hint or "")


def test_the_same_tree_is_the_same_text() -> None:
    table = every_type.table()
    made = [
        EnvelopeEncoder(table, every_type.options(0), SinkTurn()).schema
        for _ in range(2)
    ]
    assert avro_schema(made[0]) == avro_schema(made[1])
