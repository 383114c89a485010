"""Records in protobuf: numbers of fields come from the registry, and stay."""

import shlex
import shutil
import subprocess
from typing import Any, Final

import pytest
from confluent_kafka.schema_registry import Schema

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
from walstream.formats.encodings.protobuf import parsed_proto

pytestmark = pytest.mark.same_on_15
__all__ = ["run"]  # a fixture

PROTOBUF: Final = "protobuf"
_TYPES: Final = """
ALTER TABLE t ADD a timestamp DEFAULT '2020-02-29 03:04:05.6', ADD b timestamptz,
  ADD c date, ADD d numeric, ADD e int[], ADD f bytea, ADD g uuid, ADD h bit(5),
  ADD i interval, ADD j jsonb, ADD k point, ADD l time, ADD n2 date[],
  ADD o float4, ADD p bool NOT NULL DEFAULT false, ADD q bigint NOT NULL DEFAULT 0
"""
_ROW: Final = """
INSERT INTO t VALUES (9, 'nine', NULL, 1234.56, '2024-01-01', '2024-05-06 07:08:09+02',
  '0044-03-15 BC', 12.3400, '{1,NULL,3}', '\\x00ff', gen_random_uuid(), B'10110',
  '01:02:03', '{"a": [1]}', '(1,2.5)', '23:59:59.5', '{2020-02-29,NULL}', 1.1, true, -7)
"""
_ROWS: Final = "SELECT t::text FROM t ORDER BY id"


def numbers(read: RegisteredReader, subject: str) -> dict[str, int]:
    """Return the numbers of a row's columns in the latest version of a subject."""
    latest = max(read.client.get_versions(subject))  # the client keeps a latest one
    text = read.client.get_version(subject, latest).schema.schema_str
    fields = parsed_proto(str(text)).first.live
    return {name: field.number for name, field in fields.items()}


def test_strangers_read_changes_and_rows_of_before(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    with (
        RegisteredReader(registry.url) as read,
        run(registry, encoding=PROTOBUF) as walstream,
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
        assert read.client.get_latest_version(value).schema.schema_type == "PROTOBUF"


@pytest.mark.parametrize("level", ["", "BACKWARD", "FULL"])
def test_numbers_stay_whatever_comes_and_goes(  # noqa: PLR0913, PLR0917 - fixtures
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
    level: str,
) -> None:
    """Also where the state folder is lost, and where a table is as it was before."""
    subject = f"{topic_prefix}public.t-value"
    told = {"compatibility": level}
    walstream = run(registry, "debezium_row", PROTOBUF, registry=told)
    with (
        RegisteredReader(registry.url) as read,
        walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        reader.count(1)
        assert numbers(read, subject) == {"id": 1, "v": 2, "m": 3, "n": 4}
        database.execute("ALTER TABLE t DROP n, ADD w int")
        database.execute("INSERT INTO t VALUES (2, 'two', 'ok', 7)")
        reader.count(2)
        assert numbers(read, subject) == {"id": 1, "v": 2, "m": 3, "w": 5}
        # a label more is no other schema
        database.execute("ALTER TYPE mood ADD VALUE 'new'")
        database.execute("ALTER TABLE t RENAME v TO u")
        database.execute("INSERT INTO t VALUES (3, 'three', 'new', 8)")
        reader.count(3)
        assert walstream.terminate() == 0
        shutil.rmtree(walstream.state)
        database.execute(
            "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots"
        )
        walstream = run(
            registry,
            "debezium_row",
            PROTOBUF,
            registry=told,
            source={"backfill": "never"},
        )
        with walstream:
            walstream.streaming()
            database.execute("INSERT INTO t VALUES (4, 'four', 'new', 9)")
            reader.count(4)
            assert numbers(read, subject) == {"id": 1, "u": 6, "m": 3, "w": 5}
            before = read.versions(subject)
            database.execute("ALTER TABLE t ADD n numeric(6, 2), ADD x text")
            database.execute("INSERT INTO t VALUES (5, 'five', 'new', 9, 1.5, 'x')")
            reader.count(5)
            database.execute("ALTER TABLE t DROP n, DROP x")
            database.execute("INSERT INTO t VALUES (6, 'six', 'new', 9)")
            records = reader.count(6)
            wanted = {"id": 1, "u": 6, "m": 3, "w": 5, "n": 4, "x": 7}
            assert numbers(read, subject) == wanted
            assert read.versions(subject) == before + 1
        rows = [read.value_of(one) for one in records]
        assert [row.get("v") or row["u"] for row in rows] == [
            *("before", "two", "three", "four", "five", "six")
        ]
        assert [row.get("w") for row in rows] == [None, 7, 8, 9, 9, 9]
        assert (rows[4]["n"], rows[4]["x"]) == ("1.50", "x")


def test_a_mirror_follows_and_tail_shows_rows(  # noqa: PLR0913, PLR0917 - fixtures
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    postgres: PostgresServer,
    topic_prefix: str,
) -> None:
    """What the text of a schema says of types in words is enough for both."""
    database.execute(_TYPES)
    with (
        temporary_database(postgres) as target,
        run(registry, encoding=PROTOBUF, debezium={"interval": "string"}) as walstream,
    ):
        target.execute(TABLE.replace("IDENTITY FULL", "IDENTITY DEFAULT"))
        target.execute("TRUNCATE t")
        target.execute(_TYPES)
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
            database.execute(_ROW)

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


def test_another_type_stops_until_the_subject_takes_it(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    told = {"compatibility": "BACKWARD"}
    walstream = run(registry, "debezium_row", PROTOBUF, registry=told)
    with (
        RegisteredReader(registry.url) as read,
        walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        walstream.until("backfill ended")
        database.execute("ALTER TABLE t DROP n, ADD n int")
        (refused,) = findings(walstream, "schema-incompatible")
        what = "field n was optional string and is optional int32"
        assert what in refused["what"]
        database.execute("INSERT INTO t VALUES (2, 'two', 'ok', 7)")
        walstream.ends_with(3, what, "curl -X PUT")
        (stopped,) = walstream.said("stopped")
        subprocess.run(shlex.split(stopped["repair"]), check=True, capture_output=True)
        walstream.start()
        _, record = reader.until(lambda found: len(found) >= 2)
        assert read.value_of(record)["n"] == 7


def test_on_incompatible_sends_on_by_another_subject(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """Of which numbers are its own."""
    told = {"compatibility": "BACKWARD", "on_incompatible": "{subject}-2"}
    with (
        RegisteredReader(registry.url) as read,
        run(registry, "debezium_row", PROTOBUF, registry=told) as walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        walstream.until("backfill ended")
        database.execute("ALTER TABLE t DROP v, DROP n, ADD n int")
        database.execute("INSERT INTO t VALUES (2, 'ok', 7)")
        _, record = reader.count(2)
        assert read.value_of(record)["n"] == 7
        other = f"{topic_prefix}public.t-value-2"
        assert numbers(read, other) == {"id": 1, "m": 2, "n": 3}


def test_what_others_registered_is_taken(
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """Numbers are those of the subject, whoever gave them; others are kept out."""
    subject = f"{topic_prefix}public.t-key"
    text = (
        'syntax = "proto3"; package a;'
        "message Other { optional string gone = 3; int32 id = 7; reserved 9 to 11; }"
    )
    with (
        RegisteredReader(registry.url) as read,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        read.client.register_schema(subject, Schema(text, "PROTOBUF"))
        with run(registry, "debezium_row", PROTOBUF) as walstream:
            walstream.until("backfill ended")
            (record,) = reader.count(1)
            assert read.read(record.key) == {"id": 1}
            assert numbers(read, subject) == {"id": 7}


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
        encoding=PROTOBUF,
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
        assert message["message"] == {"prefix": "mine", "content": b"hello"}
        (_, begin), (_, end) = records[told]
        assert (begin["status"], end["status"]) == ("BEGIN", "END")
        assert begin["data_collections"] is None
        assert [one["event_count"] for one in end["data_collections"]] == [1]
        assert read.read(beats.records[0].key) == {"serverName": name}
        assert walstream.terminate() == 0


def test_tasks_of_spark_write_by_numbers_that_they_are_given(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    database.execute(
        "INSERT INTO t SELECT i, 'v' || i, 'ok', i FROM generate_series(2, 2000) i"
    )
    walstream = run(registry, encoding=PROTOBUF)
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


def test_what_check_prints_registers_what_is_waited_for(
    run: Run, registry: LocalRegistry
) -> None:
    told = {"auto_register": False}
    walstream = run(registry, "debezium_row", PROTOBUF, registry=told)
    for one in findings(walstream, "schema-unregistered"):
        command = shlex.split(one["repair"]["command"])
        subprocess.run(command, check=True, capture_output=True)
    assert findings(walstream, "schema-unregistered") == []


def test_a_registry_that_was_replaced_gets_the_same_numbers(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    own_registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """Ids are others then, and so records come again; numbers are kept here."""
    subject = f"{topic_prefix}public.t-value"
    walstream = run(own_registry, "debezium_row", PROTOBUF)
    with walstream, Reader(kafka.bootstrap, topic_prefix, raw) as reader:
        walstream.until("backfill ended")
        database.execute("ALTER TABLE t DROP v, ADD w int")
        database.execute("INSERT INTO t VALUES (2, 'ok', 2, 7)")
        reader.count(2)
        walstream.kill()
        own_registry.anew()
        with RegisteredReader(own_registry.url) as read:
            for number in range(5):
                text = f'syntax = "proto3"; message R{number} {{ int32 x = 1; }}'
                read.client.register_schema(f"R{number}", Schema(text, "PROTOBUF"))
        walstream.start()
        database.execute("INSERT INTO t VALUES (3, 'ok', 2, 8)")
        walstream.until("another id for a schema")
        records = reader.until(
            lambda found: any(one.value and b"\x28\x08" in one.value for one in found)
        )
        with RegisteredReader(own_registry.url) as read:
            assert read.value_of(records[-1])["w"] == 8
            assert numbers(read, subject) == {"id": 1, "m": 3, "n": 4, "w": 5}
        assert walstream.terminate() == 0


def test_a_detached_sink_goes_on_with_the_numbers_that_it_had(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    own_registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """It is too large for the topic at first; the registry is away meanwhile."""
    admin, topic = TopicAdmin(kafka.bootstrap), f"{topic_prefix}public.t"
    admin.create(topic, 1, max_message_bytes="4000")
    walstream = run(own_registry, encoding=PROTOBUF, source={"backfill": "never"})
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
    walstream = run(registry, encoding=PROTOBUF, topic_config=sizes)
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


def test_numbers_of_a_deleted_subject_stay(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """As people do where it refuses a schema: records have its numbers all the same."""
    subject = f"{topic_prefix}public.t-value"
    walstream = run(registry, "debezium_row", PROTOBUF)
    with (
        RegisteredReader(registry.url) as read,
        walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        reader.count(1)
        read.client.delete_subject(subject)
        database.execute("ALTER TABLE t DROP v, ADD w int")
        database.execute("INSERT INTO t VALUES (2, 'ok', 1.5, 7)")
        reader.count(2)
        assert numbers(read, subject) == {"id": 1, "m": 3, "n": 4, "w": 5}
