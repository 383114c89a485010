"""Schemas of records in a registry, which may be away, or refuse them."""

import json
import shlex
import subprocess
from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka.schema_registry import Schema
from confluent_kafka.schema_registry.avro import AvroDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.registered import RegisteredReader
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream, toml
from tests.support.servers.apicurio import LocalRegistry

pytestmark = pytest.mark.same_on_15

TABLE = """
CREATE TYPE mood AS ENUM ('sad', 'ok');
CREATE TABLE t (id int PRIMARY KEY, v text, m mood DEFAULT 'ok', n numeric(6, 2));
ALTER TABLE t REPLICA IDENTITY FULL;
INSERT INTO t VALUES (1, 'before', 'sad', 1.5);
"""
CHANGES = """
INSERT INTO t VALUES (2, 'two', 'ok', 2);
UPDATE t SET v = 'one' WHERE id = 1;
UPDATE t SET id = 3 WHERE id = 2;
DELETE FROM t WHERE id = 1;
"""

Run = Callable[..., Walstream]


def raw(value: Any) -> Any:
    """Leave a record's value as it is."""
    return value


@pytest.fixture
def run(database: Database, runs: Runs, topic_prefix: str) -> Run:
    database.execute(TABLE)

    def made(
        server: LocalRegistry,
        form: str = "debezium",
        encoding: str = "avro",
        **told: Any,
    ) -> Walstream:
        source = {"backfill": "initial", **told.pop("source", {})}
        sink = {
            "format": form,
            "encoding": encoding,
            "topic": topic_prefix + "{schema}.{table}",
            "topic_partitions": 1,
            "registry": {"url": server.url, **told.pop("registry", {})},
            **told,
        }
        return runs(database.dsn, sink=sink, source=source)

    return made


def shown(records: RegisteredReader, record: Record) -> tuple[Any, ...]:
    key, value = records.read(record.key), records.value_of(record)
    if value is None:
        return key, None
    rows = [value["before"], value["after"]]
    return key, value["op"], *(row and (row["v"], row["m"]) for row in rows)


def test_a_stranger_reads_changes_and_rows_of_before(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    with (
        RegisteredReader(registry.url) as read,
        run(registry) as walstream,
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
        assert read.versions(f"{topic_prefix}public.t-value") == 1
        assert read.versions(f"{topic_prefix}public.t-key") == 1
        theirs = AvroDeserializer(read.client)
        for one in records:
            for field, data in (
                (MessageField.KEY, one.key),
                (MessageField.VALUE, one.value),
            ):
                context = SerializationContext(one.topic, field)
                assert theirs(data, context) == read.read(data)


def test_columns_become_versions(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    with (
        RegisteredReader(registry.url) as read,
        run(registry, "debezium_row") as walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        walstream.until("backfill ended")
        database.execute("ALTER TABLE t ADD w int")
        database.execute("INSERT INTO t VALUES (2, 'two', 'ok', 2, 7)")
        reader.count(2)
        database.execute("ALTER TYPE mood ADD VALUE 'new'")
        database.execute("INSERT INTO t VALUES (3, 'three', 'new', 2, 8)")
        reader.count(3)
        database.execute("ALTER TABLE t RENAME v TO u")
        database.execute("INSERT INTO t VALUES (4, 'four', 'new', 2, 9)")
        records = reader.until(lambda found: len(found) >= 4)
        rows = [read.value_of(one) for one in records]
        assert [row.get("v", row.get("u")) for row in rows] == [
            *("before", "two", "three", "four")
        ]
        assert [row.get("w") for row in rows] == [None, 7, 8, 9]
        assert rows[2]["m"] == "new"
        assert read.versions(f"{topic_prefix}public.t-value") == 4


def test_what_a_registry_that_is_away_gave_is_enough(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    own_registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """Known shapes pass, over a restart too; a new one waits, and loses nothing."""
    walstream = run(own_registry)
    with (
        RegisteredReader(own_registry.url) as read,
        walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        walstream.until("backfill ended")
        database.execute("INSERT INTO t VALUES (2, 'two', 'ok', 2)")
        reader.count(2)
        own_registry.kill()
        database.execute("INSERT INTO t VALUES (3, 'three', 'ok', 2)")
        reader.count(3)
        walstream.kill()
        database.execute("INSERT INTO t VALUES (4, 'four', 'ok', 2)")
        walstream.start()
        reader.count(4)
        database.execute("ALTER TABLE t ADD w int")
        database.execute("INSERT INTO t VALUES (5, 'five', 'ok', 2, 1)")
        walstream.until("waiting for the schema registry")
        wait_until(lambda: waits(walstream), 30, "the status says that it waits")
        own_registry.start()
        reader.count(5)
        walstream.until("the schema registry answers")
        wait_until(lambda: not waits(walstream), 30, "the status says that it is over")
        assert walstream.terminate() == 0
        found = [read.value_of(one)["after"]["v"] for one in reader.records]
    assert found == ["before", "two", "three", "four", "five"]


def waits(walstream: Walstream) -> bool:
    told = json.loads(verb(walstream.configuration, "status", "--json").stdout)
    (source,) = told["sources"]
    (sink,) = source["sinks"]
    why = [one for one in source["problems"] if "waited for the schema registry" in one]
    return bool(sink["state"] == "waiting" and why)


def test_what_is_not_compatible_stops_and_says_which_fields(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """The command that is printed lets it pass; nothing is lost."""
    walstream = run(registry, "debezium_row", registry={"compatibility": "FULL"})
    with (
        walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        walstream.until("backfill ended")
        database.execute(
            "DELETE FROM t; ALTER TABLE t ALTER n TYPE text, ADD w int NOT NULL"
        )
        database.execute("INSERT INTO t VALUES (2, 'two', 'ok', '2', 3)")
        walstream.ends_with(3, "field n was", "field w", "no default", "curl -X PUT")
        (stopped,) = walstream.said("stopped")
        subprocess.run(shlex.split(stopped["repair"]), check=True, capture_output=True)
        walstream.start()
        reader.until(lambda found: len(found) >= 3)


def test_a_registry_that_was_replaced_gives_other_ids(
    database: Database,
    run: Run,
    kafka: KafkaServer,
    own_registry: LocalRegistry,
    topic_prefix: str,
) -> None:
    """Its ids are those of other schemas: records carry the new ones."""
    walstream = run(own_registry)
    with (
        walstream,
        Reader(kafka.bootstrap, topic_prefix, raw) as reader,
    ):
        walstream.until("backfill ended")
        walstream.kill()
        own_registry.anew()
        with RegisteredReader(own_registry.url) as read:
            for number in range(5):
                name = f"R{number}"
                text = json.dumps({"type": "record", "name": name, "fields": []})
                read.client.register_schema(name, Schema(text, "AVRO"))
        walstream.start()
        database.execute("INSERT INTO t VALUES (2, 'two', 'ok', 2)")
        walstream.until("another id for a schema")
        _, record = reader.count(2)
        with RegisteredReader(own_registry.url) as read:
            assert read.value_of(record)["after"]["v"] == "two"
        assert walstream.terminate() == 0


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
        assert end["event_count"] == 1
        assert read.read(beats.records[0].key) == {"serverName": name}
        assert walstream.terminate() == 0


def test_check_says_what_tables_would_register(
    database: Database, run: Run, registry: LocalRegistry, topic_prefix: str
) -> None:
    """The commands that it prints are enough."""
    walstream = run(registry, "debezium_row", registry={"auto_register": False})
    unregistered = findings(walstream, "schema-unregistered")
    assert sorted(one["subject"] for one in unregistered) == [
        f"subject {topic_prefix}public.t-{part}" for part in ("key", "value")
    ]
    for one in unregistered:
        command = shlex.split(one["repair"]["command"])
        subprocess.run(command, check=True, capture_output=True)
    assert findings(walstream, "schema-unregistered") == []
    with RegisteredReader(registry.url) as read:
        read.client.set_compatibility(f"{topic_prefix}public.t-value", "FULL")
    database.execute("DELETE FROM t")
    database.execute("ALTER TABLE t ADD w int NOT NULL")
    walstream = run(registry, "debezium_row")
    (refused,) = findings(walstream, "schema-incompatible")
    assert "new field w int, which has no default" in refused["what"]
    command = shlex.split(refused["repair"]["command"])
    subprocess.run(command, check=True, capture_output=True)
    assert findings(walstream, "schema-incompatible") == []


def test_check_says_that_a_registry_is_away(run: Run, registry: LocalRegistry) -> None:
    walstream = run(registry, registry={"url": "http://127.0.0.1:1"})
    (found,) = findings(walstream, "registry")
    assert "refused" in found["what"]
    assert found["exit_code"] == 5


def findings(walstream: Walstream, code: str) -> list[dict[str, Any]]:
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    told = json.loads(verb(walstream.configuration, "check", "--json").stdout)
    (source,) = told["sources"]
    return [one for one in source["findings"] if one["code"] == code]
