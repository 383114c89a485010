"""A real Debezium with Apicurio's Avro converter beside walstream, on the same WAL.

Both register the same schemas, and write the same bytes: a schema's id is one for one
text, and what fastavro reads is what it would write. But for the rows of the table in
docs/debezium.md, as in test_debezium_live.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fault.test_debezium_live import (
    OF_EXISTING,
    ONE_PARTITION,
    VARIANTS,
    random_changes,
    read_existing_rows,
    stream_golden_changes,
)
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer
from tests.support.oracles.avro_records import AvroTrees, schema_id
from tests.support.oracles.debezium_records import explained
from tests.support.oracles.debezium_rules import RULES
from tests.support.oracles.json_difference import Node, differences
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.debezium import Beside, beside, by_topic
from tests.support.programs.debezium_variant import THEIR_HEARTBEAT, Variant
from tests.support.servers.apicurio import CONVERTER, LocalRegistry
from tests.support.servers.connect import SINK, SOURCE
from tests.support.servers.maven import JarsUnreachable, jars
from walstream.config.debezium import HEARTBEAT_TOPIC

pytestmark = [pytest.mark.fault, pytest.mark.fault_long]


NOT_IN_AVRO = {
    "float that has no shortest form before Java 19",  # has no digits
    "unwrapped delete, `tombstone`",  # by JsonConverter
}


@pytest.fixture
def debezium() -> None:
    try:
        jars(*SOURCE, *SINK)
        jars(CONVERTER)
    except JarsUnreachable as error:
        pytest.skip(str(error))


@pytest.fixture
def pair(
    debezium: None,  # noqa: ARG001
    database: Database,
    kafka: KafkaServer,
    registry: LocalRegistry,
    tmp_path: Path,
) -> Iterator[Beside]:
    told = {"partitions": ONE_PARTITION, "registry": registry}
    first, *others = map(Variant.in_avro, VARIANTS)
    variants = replace(first, heartbeat=True), *others
    with beside(database, kafka, tmp_path, variants, **told) as made:
        yield made


@pytest.mark.takes(180)
def test_records_are_those_of_the_converter_but_for_the_documented_differences(
    pair: Beside,
) -> None:
    missing = stream_golden_changes(pair) | OF_EXISTING | NOT_IN_AVRO
    used, others = explained(pair)
    assert not others, "\n".join(map(str, others))
    assert RULES.keys() - used == missing
    assert_same_heartbeats(pair)
    assert_registered_as_written(pair)


def assert_registered_as_written(made: Beside) -> None:
    """No schema is registered that no record has: those of records are compared."""
    assert made.registry is not None
    with AvroTrees(made.registry.url) as trees:
        for topic, records in by_topic(made.ours.records).items():
            values = {schema_id(one.value) for one in records if one.value}
            assert trees.registered(f"{topic}-value") == values, topic
            if keys := {schema_id(one.key) for one in records if one.key}:
                assert trees.registered(f"{topic}-key") == keys, topic


def assert_same_heartbeats(made: Beside) -> None:
    """Schemas, keys, and all that no clock tells, are the same."""
    assert made.registry is not None
    name = made.name(made.variants[0])
    prefixes = (f"{THEIR_HEARTBEAT}.{name}", f"{HEARTBEAT_TOPIC}.{name}")
    with AvroTrees(made.registry.url) as trees:
        theirs, ours = (trees_of(made.kafka, prefix, trees) for prefix in prefixes)
    found = {one.path for one in differences(theirs, ours)}
    assert found <= {("value", "payload", "ts_ms")}


def trees_of(kafka: KafkaServer, prefix: str, trees: AvroTrees) -> dict[str, Node]:
    with Reader(kafka.bootstrap, prefix, lambda value: value) as reader:
        first: Record = reader.until(bool)[0]
    return {"key": trees.tree(first.key), "value": trees.tree(first.value)}


@pytest.mark.usefixtures("debezium")
@pytest.mark.takes(70)
def test_records_of_random_changes_are_those_of_the_converter(
    newest_postgres: PostgresServer,
    kafka: KafkaServer,
    registry: LocalRegistry,
    tmp_path: Path,
) -> None:
    random_changes(
        newest_postgres,
        kafka,
        tmp_path,
        steps=150,
        schema_changes=6,
        registry=registry,
    )


@pytest.mark.usefixtures("debezium")
@pytest.mark.takes(900)
def test_records_of_many_random_changes_are_those_of_the_converter(
    postgres: PostgresServer,
    kafka: KafkaServer,
    registry: LocalRegistry,
    tmp_path: Path,
) -> None:
    random_changes(
        postgres,
        kafka,
        tmp_path,
        steps=4000,
        schema_changes=80,
        registry=registry,
    )


@pytest.mark.takes(70)
def test_existing_rows_are_those_of_debeziums_snapshot(pair: Beside) -> None:
    read_existing_rows(pair)
    used, others = explained(pair)
    assert not others, "\n".join(map(str, others))
    assert used >= OF_EXISTING
