"""Debezium on a Kafka Connect of its own, tuned: a process for each run.

Both come from Maven, by jgo; nothing of them is built here.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.place import Place
from walstream.spark.java import (
    find_java,
)
from walstream.testing.servers.port import free_port

VERSION: Final = "3.5.0.Final"
_CONNECT: Final = "4.1.1"  # what this Debezium is made with
_DEBEZIUM: Final = (
    f"io.debezium:debezium-connector-postgres:{VERSION}",
    *(
        f"org.apache.kafka:connect-{part}:{_CONNECT}"
        for part in ("runtime", "json", "transforms")
    ),
    "org.apache.logging.log4j:log4j-slf4j-impl:2.25.4!",
)
_HEAP: Final = "2g"
STREAMING: Final = {
    # "starts from the time when the slot was created", which is what is wanted
    "snapshot.mode": "no_data",
    "publication.autocreate.mode": "disabled",
    "tombstones.on.delete": "false",  # the one that unwrapping makes is enough
    "transforms.unwrap.delete.tombstone.handling.mode": "tombstone",
}
_LOGGING: Final = """\
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d{ISO8601} %p %c{1}: %m%n
rootLogger.level = info
rootLogger.appenderRef.out.ref = out
"""


def command(
    place: Place, server: str, settings: Mapping[str, object], linger_ms: int = 20
) -> list[str | Path]:
    """Configure a connector of this name, and give the command that runs it."""
    folder = place.folder / server
    folder.mkdir()
    worker, connector = folder / "worker.properties", folder / "connector.properties"
    told = {**_worker(place, folder), "producer.linger.ms": linger_ms}
    worker.write_text(_lines(told), "utf-8")
    connector.write_text(_lines({**_connector(place, server), **settings}), "utf-8")
    logging = folder / "log4j2.properties"
    logging.write_text(_LOGGING, "utf-8")
    return [
        *(find_java(), f"-Xmx{_HEAP}", f"-Dlog4j2.configurationFile={logging}"),
        *("-cp", ":".join(map(str, fetch(*_DEBEZIUM)))),
        *("org.apache.kafka.connect.cli.ConnectStandalone", worker, connector),
    ]


def _worker(place: Place, folder: Path) -> Mapping[str, object]:
    plain = "org.apache.kafka.connect.json.JsonConverter"
    return {
        "bootstrap.servers": place.kafka.bootstrap,
        "listeners": f"http://127.0.0.1:{free_port()}",
        "key.converter": plain,
        "key.converter.schemas.enable": "false",
        "value.converter": plain,
        "value.converter.schemas.enable": "false",
        "offset.storage.file.filename": folder / "offsets",
        "offset.flush.interval.ms": 1000,
        "plugin.discovery": "hybrid_warn",
        "producer.acks": "all",
        "producer.compression.type": "lz4",
        "producer.batch.size": 1_000_000,
        "producer.buffer.memory": 64 << 20,
    }


def _connector(place: Place, server: str) -> Mapping[str, object]:
    return {
        "name": server,
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": 1,
        "database.hostname": "127.0.0.1",
        "database.port": place.postgres.port,
        "database.user": "postgres",
        "database.password": "",
        "database.dbname": "postgres",
        "topic.prefix": server,
        "plugin.name": "pgoutput",
        "slot.name": server,
        "publication.name": server,
        "decimal.handling.mode": "string",
        "max.batch.size": 32_768,
        "max.queue.size": 262_144,
        "poll.interval.ms": 10,
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    }


def _lines(settings: Mapping[str, object]) -> str:
    return "".join(f"{name}={setting}\n" for name, setting in settings.items())


def fetch(*coordinates: str) -> list[Path]:
    """Give the jars of Maven coordinates, and what they need."""
    import jgo  # noqa: PLC0415 - slow to import

    artifacts = jgo.resolve("+".join(coordinates))
    return [artifact.resolve() for artifact in artifacts]
