"""Records what a real Debezium's EventRouter makes of three outbox tables.

`python -m tests.data.outbox.record LIB` runs schema.sql and workload.sql on PostgreSQL
18, with a Kafka, and a Kafka Connect whose jars are in the folder LIB: those of
io.debezium:debezium-connector-postgres:3.5.0.Final, and of org.apache.kafka
connect-runtime, connect-json and connect-transforms 4.1.1. It writes

frames.json.gz: [lsn, payload in hex] of the stream, as a slot of its own gave it
facts.json: of each column of each table, see tests.support.oracles.column_facts
golden.json.gz: of each of the connectors in VARIANTS, by topic, each record's
  [partition, timestamp, key, value, headers]; what is no UTF-8 is {"hex": ...}

`errors.tolerance=all`: a record at which a connector would stop is not there.
"""

import gzip
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import astuple
from pathlib import Path
from typing import Any, Final

import psycopg
from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from tests.data.debezium.record import statements
from tests.support.fixtures.postgres import local_postgres
from tests.support.oracles.column_facts import facts_now
from walstream.spark.java import find_java
from walstream.testing.servers import LocalKafka
from walstream.testing.servers.port import free_port

FOLDER: Final = Path(__file__).parent
_KAFKA: Final = "org.apache.kafka.connect"
_STRING: Final = {
    f"{one}.converter": f"{_KAFKA}.storage.StringConverter" for one in ("key", "value")
}
_SCHEMAS: Final = {
    f"{one}.converter": f"{_KAFKA}.json.JsonConverter" for one in ("key", "value")
}
_JSON: Final = {
    **_SCHEMAS,
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
}
_BINARY: Final = {
    **_STRING,
    "value.converter": "io.debezium.converters.BinaryDataConverter",
}
_BYTES: Final = {
    **_STRING,
    "value.converter": f"{_KAFKA}.converters.ByteArrayConverter",
}
_EXPAND: Final = {"table.expand.json.payload": "true"}
_NULLS: Final = {"table.json.payload.null.behavior": "optional_bytes"}
_TOMBSTONE: Final = {"route.tombstone.on.empty.payload": "true"}
_ALIASES: Final = {"type": "type:{}:eventType", "aggregateid": "aggregateid:{}:key"}
_SHOWN: Final = (
    *("type", "tenant", "small", "n", "big", "ok", "ratio"),
    *("amount", "day", "made"),
)


def _placed(placement: str, *columns: str) -> Mapping[str, str]:
    told = [
        _ALIASES.get(one, f"{one}:{{}}").format(placement)
        for one in (*_SHOWN, *columns)
    ]
    return {"table.fields.additional.placement": ",".join(told)}


_HEADERS: Final = _placed("header", "zoned", "raw", "aggregateid")
_ENVELOPE: Final = _placed("envelope", "made3", "zoned", "raw")
_BOTH: Final = {
    "table.fields.additional.placement": "type:header:eventType,tenant:envelope:who"
}
VARIANTS: Final[Mapping[str, Mapping[str, str]]] = {
    "string": _STRING,
    "string_headers": {
        **_STRING,
        **_HEADERS,
        **_TOMBSTONE,
        "table.field.event.timestamp": "made",
    },
    "json": _JSON,
    "json_tombstone": {**_JSON, **_TOMBSTONE, "table.field.event.timestamp": "made3"},
    "json_headers": {**_JSON, **_HEADERS},
    "json_envelope": {**_JSON, **_ENVELOPE},
    "json_both": {**_JSON, **_BOTH, **_TOMBSTONE},
    "json_expand": {**_JSON, **_EXPAND},
    "json_expand_nulls": {**_JSON, **_EXPAND, **_NULLS},
    "json_expand_tombstone": {**_JSON, **_EXPAND, **_TOMBSTONE},
    "json_expand_both": {**_JSON, **_EXPAND, **_BOTH},
    "json_partition": {
        **_JSON,
        "table.fields.additional.placement": "part:partition",
        "route.topic.replacement": "parts.${routedByValue}",
    },
    "schemas": _SCHEMAS,
    "schemas_envelope": {**_SCHEMAS, **_ENVELOPE},
    "schemas_expand": {**_SCHEMAS, **_EXPAND},
    "schemas_expand_nulls": {**_SCHEMAS, **_EXPAND, **_NULLS},
    "schemas_expand_both": {**_SCHEMAS, **_EXPAND, **_BOTH},
    "words_string": {**_STRING, **_TOMBSTONE},
    "words_json": _JSON,
    "words_schemas": _SCHEMAS,
    "words_expand": {**_JSON, **_EXPAND},
    "words_expand_tombstone": {**_JSON, **_EXPAND, **_TOMBSTONE},
    "words_schemas_expand": {**_SCHEMAS, **_EXPAND},
    "blobs_binary": _BINARY,
    "blobs_tombstone": {**_BINARY, **_TOMBSTONE},
    "blobs_bytes": _BYTES,
    "blobs_json": _JSON,
    "blobs_schemas": _SCHEMAS,
    "blobs_envelope": {
        **_SCHEMAS,
        "table.fields.additional.placement": "note:envelope",
    },
    "fixed": {**_JSON, "route.topic.replacement": "one.topic"},
}
"""By the beginning of their topics' names: settings of converters, and of EventRouter.

Those without a converter's name are EventRouter's.
"""
_ROUTED: Final = "outbox.event.${routedByValue}"
_SLOT: Final = "golden"
_QUIET_S: Final = 15.0


def table_of(variant: str) -> str:
    """Name the table that a connector reads."""
    first = variant.partition("_")[0]
    return first if first in {"words", "blobs"} else "outbox"


def main(lib: str) -> None:
    with ExitStack() as stack:
        server = stack.enter_context(
            local_postgres(18, max_replication_slots="60", max_wal_senders="60")
        )
        kafka = stack.enter_context(
            LocalKafka(settings={"auto.create.topics.enable": "true"})
        )
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            _run(connection, "schema.sql")
            connection.execute("CREATE PUBLICATION golden FOR ALL TABLES")
            for slot in (_SLOT, *VARIANTS):
                connection.execute(
                    "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,)
                )
            _run(connection, "workload.sql")
            _write("frames.json.gz", _frames(connection))
            found = facts_now(connection)
            _write_facts(found)
            admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
            names = [NewTopic(f"{one}.parts.Order", 3, 1) for one in VARIANTS]
            for made in admin.create_topics(names).values():
                made.result()
            stack.enter_context(_connect(lib, server.port, kafka.bootstrap))
            golden = _read(kafka.bootstrap, connection)
    _write("golden.json.gz", golden)


def _run(connection: psycopg.Connection[Any], script: str) -> None:
    for statement in statements((FOLDER / script).read_text("utf-8")):
        connection.execute(statement.encode())


def _frames(connection: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    rows = connection.execute(
        "SELECT lsn::text, data FROM pg_logical_slot_get_binary_changes(%s, NULL, NULL,"
        " 'proto_version', '1', 'publication_names', 'golden')",
        (_SLOT,),
    )
    return [(lsn, bytes(payload).hex()) for lsn, payload in rows]


def _write_facts(found: Mapping[tuple[str, str], Mapping[str, Any]]) -> None:
    facts = {
        table: {column: astuple(one) for column, one in columns.items()}
        for (_, table), columns in sorted(found.items())
    }
    lines = (f"{json.dumps(name)}: {json.dumps(facts[name])}" for name in facts)
    (FOLDER / "facts.json").write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")


def _write(name: str, content: object) -> None:
    text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
    (FOLDER / name).write_bytes(gzip.compress(text.encode(), mtime=0))


@contextmanager
def _connect(lib: str, port: int, bootstrap: str) -> Iterator[None]:
    """Run Connect with a connector for each variant."""
    folder = Path(lib).parent / "connect"
    folder.mkdir(exist_ok=True)
    (folder / "offsets").unlink(missing_ok=True)
    worker = {
        "bootstrap.servers": bootstrap,
        "listeners": f"http://127.0.0.1:{free_port()}",
        "key.converter": f"{_KAFKA}.json.JsonConverter",
        "value.converter": f"{_KAFKA}.json.JsonConverter",
        "offset.storage.file.filename": folder / "offsets",
        "plugin.discovery": "hybrid_warn",
        "connector.client.config.override.policy": "All",
    }
    files = [_properties(folder / "worker.properties", worker)]
    for name, settings in VARIANTS.items():
        given = _connector(name, port, settings)
        files.append(_properties(folder / f"{name}.properties", given))
    command = [find_java(), "-Xmx2g", "-cp", f"{lib}/*"]
    program = "org.apache.kafka.connect.cli.ConnectStandalone"
    with (folder / "log").open("wb") as log:
        running = subprocess.Popen(
            [*map(str, command), program, *map(str, files)], stdout=log, stderr=log
        )
        try:
            yield
        finally:
            running.terminate()
            running.wait()


def _properties(path: Path, settings: Mapping[str, object]) -> Path:
    path.write_text("".join(f"{key}={one}\n" for key, one in settings.items()), "utf-8")
    return path


def _connector(name: str, port: int, settings: Mapping[str, str]) -> dict[str, object]:
    router = {
        f"transforms.outbox.{key}": one
        for key, one in settings.items()
        if ".converter" not in key
    }
    routed = settings.get("route.topic.replacement", _ROUTED)
    router["transforms.outbox.route.topic.replacement"] = f"{name}.{routed}"
    return {
        "name": name,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": 1,
        "database.hostname": "127.0.0.1",
        "database.port": port,
        "database.user": "postgres",
        "database.password": "",
        "database.dbname": "postgres",
        "topic.prefix": name,
        "plugin.name": "pgoutput",
        "slot.name": name,
        "publication.name": "golden",
        "publication.autocreate.mode": "disabled",
        "snapshot.mode": "no_data",
        "table.include.list": f"public.{table_of(name)}",
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        **{key: one for key, one in settings.items() if ".converter" in key},
        "transforms": "outbox",
        "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter",
        **router,
    }


def _read(bootstrap: str, connection: psycopg.Connection[Any]) -> object:
    """Read all topics, once every connector reads its slot and no more comes."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "golden"})
    seen: dict[tuple[str, int], int] = {}
    quiet_since = time.monotonic()
    while time.monotonic() - quiet_since < _QUIET_S:
        time.sleep(1)
        with suppress(KafkaException):  # a topic that is just being made
            ends = _ends(consumer)
            if ends != seen or _idle(connection):
                seen, quiet_since = ends, time.monotonic()
    golden: dict[str, dict[str, list[object]]] = {}
    for (topic, partition), end in sorted(seen.items()):
        consumer.assign([TopicPartition(topic, partition, 0)])
        variant, _, rest = topic.partition(".")
        found = golden.setdefault(variant, {}).setdefault(rest, [])
        read = 0
        while read < end:
            message = consumer.poll(10)
            assert message is not None, topic
            found.append(_shown(message))
            read += 1
    consumer.close()
    return golden


def _idle(connection: psycopg.Connection[Any]) -> int:
    """Count the connectors that do not stream yet."""
    row = connection.execute(
        "SELECT count(*) FROM pg_replication_slots"
        " WHERE NOT active AND slot_name <> %s",
        (_SLOT,),
    ).fetchone()
    return row[0] if row else 0


def _ends(consumer: Consumer) -> dict[tuple[str, int], int]:
    ends = {}
    for topic, described in consumer.list_topics(timeout=10).topics.items():
        if topic.partition(".")[0] not in VARIANTS:
            continue
        for partition in described.partitions:
            place = TopicPartition(topic, partition)
            _, end = consumer.get_watermark_offsets(place, timeout=10)
            if end:
                ends[topic, partition] = end
    return ends


def _shown(message: Message) -> list[object]:
    headers = [[one[0], _text(one[1])] for one in message.headers() or ()]
    key, value = _text(message.key()), _text(message.value())
    return [message.partition(), message.timestamp()[1], key, value, headers]


def _text(value: bytes | str | None) -> object:
    if value is None or isinstance(value, str):
        return value
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}


if __name__ == "__main__":
    main(sys.argv[1])
