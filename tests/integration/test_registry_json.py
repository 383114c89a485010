"""Records of JSON Schema: each fits the schema that the registry has of it."""

import shlex
import subprocess
from typing import Any, Final

import pytest
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from consumer import IdempotentConsumer, PostgresMirror
from tests.integration.test_registry import (
    CHANGES,
    TABLE,
    Run,
    findings,
    raw,
    run,
    shown,
)
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.oracles.registered import RegisteredReader
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.consumer_thread import Running
from tests.support.programs.verb import verb
from tests.support.servers.apicurio import LocalRegistry

pytestmark = pytest.mark.same_on_15
__all__ = ["run"]  # a fixture

JSON: Final = "json_schema"
_ROWS: Final = "SELECT id, v, m::text, n FROM t ORDER BY id"


def test_strangers_read_changes_and_rows_of_before(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """A validator takes them by their schemas, and so does Confluent's deserializer."""
    with (
        RegisteredReader(registry.url) as read,
        run(registry, encoding=JSON) as walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        walstream.until("backfill ended")
        database.execute(CHANGES)
        records = reader.until(lambda found: len(found) >= 8)
        assert walstream.terminate() == 0
        assert [shown(read, one) for one in records] == [
            ({"id": 1}, "r", None, ("before", "sad")),
            ({"id": 2}, "c", None, ("two", "ok")),
            ({"id": 1}, "u", ("before", "sad"), ("one", "sad")),
            ({"id": 2}, "d", ("two", "ok"), None),
            ({"id": 2}, None),
            ({"id": 3}, "c", None, ("two", "ok")),
            ({"id": 1}, "d", ("one", "sad"), None),
            ({"id": 1}, None),
        ]
        value = f"{topic_prefix}public.t-value"
        assert read.versions(value) == read.versions(f"{topic_prefix}public.t-key") == 1
        assert read.client.get_latest_version(value).schema.schema_type == "JSON"
        theirs = JSONDeserializer(None, schema_registry_client=read.client)
        for one in records:
            for field, data in (("key", one.key), ("value", one.value)):
                context = SerializationContext(
                    one.topic, getattr(MessageField, field.upper())
                )
                assert theirs(data, context) == read.read(data)


def test_a_mirror_follows_and_tail_shows_rows(  # noqa: PLR0913, PLR0917 - fixtures
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    postgres: PostgresServer,
    topic_prefix: str,
) -> None:
    with (
        temporary_database(postgres) as target,
        run(registry, encoding=JSON) as walstream,
    ):
        target.execute(TABLE.replace("IDENTITY FULL", "IDENTITY DEFAULT"))
        target.execute("TRUNCATE t")
        with IdempotentConsumer(
            PostgresMirror(target.dsn),
            target.dsn,
            group=topic_prefix,
            topics=f"{topic_prefix}public.*",
            kafka={"bootstrap.servers": kafka.bootstrap, "fetch.wait.max.ms": 10},
            registry={"url": registry.url},
        ) as consumer:
            running = Running(consumer)
            database.execute(CHANGES)
            database.execute("INSERT INTO t VALUES (9, 'nine', NULL, 1234.56)")

            def same() -> bool:
                if running.error is not None:
                    raise running.error
                return target.fetch(_ROWS) == database.fetch(_ROWS)

            wait_until(same, 120, "the mirror has the rows")
        walstream.until("backfill ended")
        told = verb(
            walstream.configuration, "tail", "--from-beginning", "--until-end", "--json"
        )
        assert '"nine"' in told.stdout, told.stderr
        assert "shown as they are" not in told.stderr


_ADD: Final = "ALTER TABLE t ADD w int"
_DROP: Final = "ALTER TABLE t DROP v"
_WIDEN: Final = "ALTER TABLE t ALTER id TYPE bigint"


@pytest.mark.parametrize(
    ("level", "statement", "taken"),
    [
        ("BACKWARD", _ADD, False),
        ("BACKWARD", _DROP, True),
        ("FORWARD", _ADD, True),
        ("FORWARD", _DROP, False),
        ("FULL", _ADD, False),
        ("FULL", _DROP, False),
        ("FULL", _WIDEN, True),
        ("NONE", _ADD, True),
        ("NONE", _DROP, True),
    ],
)
def test_what_check_says_of_another_column(  # noqa: PLR0913, PLR0917 - fixtures
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
    level: str,
    statement: str,
    taken: bool,
) -> None:
    """An object that may have other members had any of that name, to a registry."""
    with (
        run(
            registry, "debezium_row", JSON, registry={"compatibility": level}
        ) as walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        reader.count(1)
        assert walstream.terminate() == 0
    database.execute(statement)
    found = findings(walstream, "schema-incompatible")
    assert bool(found) is not taken
    if found:
        shown = "new field w null or int32" if "ADD" in statement else "is gone"
        assert shown in found[0]["what"]
        assert "default" not in found[0]["what"]


def test_what_is_not_compatible_stops_until_the_subject_takes_it(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    walstream = run(registry, encoding=JSON, registry={"compatibility": "BACKWARD"})
    with (
        RegisteredReader(registry.url) as read,
        walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        walstream.until("backfill ended")
        database.execute(_ADD)
        database.execute("INSERT INTO t VALUES (2, 'two', 'ok', 2, 7)")
        walstream.ends_with(3, "new field w", "curl -X PUT")
        (stopped,) = walstream.said("stopped")
        subprocess.run(shlex.split(stopped["repair"]), check=True, capture_output=True)
        walstream.start()
        _, record = reader.until(lambda found: len(found) >= 2)
        assert read.value_of(record)["after"] == {
            "id": 2,
            "v": "two",
            "m": "ok",
            "n": "AMg=",
            "w": 7,
        }


def test_on_incompatible_sends_on_by_another_subject(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    told = {"compatibility": "BACKWARD", "on_incompatible": "{subject}-2"}
    with (
        RegisteredReader(registry.url) as read,
        run(registry, "debezium_row", JSON, registry=told) as walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        walstream.until("backfill ended")
        database.execute(_ADD)
        database.execute("INSERT INTO t VALUES (2, 'two', 'ok', 2, 7)")
        _, record = reader.count(2)
        assert read.value_of(record)["w"] == 7
        assert read.versions(f"{topic_prefix}public.t-value-2") == 1


def test_messages_transactions_and_heartbeats_have_schemas_too(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    name = f"{topic_prefix}app"
    told = f"{name}.transaction"
    walstream = run(
        registry,
        encoding=JSON,
        debezium={"name": name, "heartbeat": "200ms"},
        messages={"prefixes": ["*"]},
        txinfo=told,
        source={"backfill": "never"},
    )
    with (
        RegisteredReader(registry.url) as read,
        walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
        Reader(kafka.bootstrap, f"__debezium-heartbeat.{name}", raw) as beats,
    ):
        walstream.streaming()
        database.execute("SELECT pg_logical_emit_message(true, 'mine', 'hello')")
        database.execute("INSERT INTO t VALUES (2, 'two', 'ok', 2)")
        reader.count(4)
        beats.until(bool)
        records: dict[str, list[Any]] = {one.topic: [] for one in reader.records}
        for one in reader.records:
            records[one.topic].append((read.read(one.key), read.value_of(one)))
        ((key, message),) = records[f"{name}.message"]
        assert key == {"prefix": "mine"}
        assert message["message"] == {"prefix": "mine", "content": "aGVsbG8="}
        (_, begin), (_, end) = records[told]
        assert (begin["status"], end["status"]) == ("BEGIN", "END")
        assert read.read(beats.records[0].key) == {"serverName": name}
        assert walstream.terminate() == 0


def test_tasks_of_spark_write_by_ids_that_they_are_given(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    database.execute(
        "INSERT INTO t SELECT i, 'v' || i, 'ok', i FROM generate_series(2, 2000) i"
    )
    walstream = run(registry, encoding=JSON)
    walstream.top = {"spark": {"min_size": "0"}}
    with (
        RegisteredReader(registry.url) as read,
        walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        walstream.until("backfill ended", 180)
        records = reader.until(lambda found: len(found) >= 2000)
        rows = [read.value_of(one)["after"] for one in records]
        assert sorted(row["id"] for row in rows) == [*range(1, 2001)]
        assert [read.read(one.key) for one in records] == [
            {"id": row["id"]} for row in rows
        ]
        assert {one.value[1:5] for one in records} == {records[0].value[1:5]}
        assert walstream.terminate() == 0


def test_a_detached_sink_goes_on_with_the_ids_that_it_had(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    own_registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """It is too large for the topic at first; the registry is away meanwhile."""
    admin, topic = TopicAdmin(kafka.bootstrap), f"{topic_prefix}public.t"
    admin.create(topic, 1, max_message_bytes="4000")
    walstream = run(own_registry, encoding=JSON, source={"backfill": "never"})
    other = f"other_{topic_prefix}"
    walstream.others = {"other-one": {"topic": other + "{schema}.{table}"}}
    with (
        RegisteredReader(own_registry.url) as read,
        walstream,
        Reader(kafka.bootstrap, topic, raw) as reader,
    ):
        database.execute("INSERT INTO t VALUES (2, 'two', 'ok', 2)")
        reader.count(1)
        own_registry.kill()
        database.execute("INSERT INTO t VALUES (3, repeat('x', 6000), 'ok', 2)")
        walstream.until("streaming to a detached sink", 60)
        admin.configure(topic, "max.message.bytes", "200000")
        walstream.until("sink is back in the source's stream", 90)
        database.execute("INSERT INTO t VALUES (4, 'four', 'ok', 2)")
        records = reader.count(3)
        own_registry.start()
        rows = [read.value_of(one)["after"] for one in records]
        assert [row["id"] for row in rows] == [2, 3, 4]
        assert walstream.terminate() == 0


def test_a_large_row_is_inserted_and_deleted_as_any_other(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    sizes = {"max.message.bytes": "20000000"}
    walstream = run(registry, encoding=JSON, topic_config=sizes)
    with (
        RegisteredReader(registry.url) as read,
        walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        reader.count(1)
        database.execute("INSERT INTO t VALUES (5, repeat('ä\"', 1 << 20), NULL)")
        database.execute("DELETE FROM t WHERE id = 5")
        records = reader.count(4)
        assert read.read(records[1].key) == {"id": 5}
        assert read.value_of(records[1])["after"]["v"] == 'ä"' * (1 << 20)
        assert [one.value is None for one in records] == [False, False, False, True]


def test_commands_that_check_prints_register_what_is_looked_up(
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    walstream = run(registry, encoding=JSON, registry={"auto_register": False})
    unregistered = findings(walstream, "schema-unregistered")
    assert sorted(one["subject"] for one in unregistered) == [
        f"subject {topic_prefix}public.t-{part}" for part in ("key", "value")
    ]
    for one in unregistered:
        command = shlex.split(one["repair"]["command"])
        subprocess.run(command, check=True, capture_output=True)
    assert findings(walstream, "schema-unregistered") == []
    with (
        RegisteredReader(registry.url) as read,
        walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        (record,) = reader.count(1)
        assert read.value_of(record)["after"]["v"] == "before"
