"""Debezium on a Kafka Connect of its own, tuned: a process for each run."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from bench.place import Place
from tests.support.servers import connect
from tests.support.servers.maven import jars
from walstream.testing.servers.port import free_port

VERSION: Final = connect.DEBEZIUM
_HEAP: Final = "2g"
_WORKER: Final = {
    "producer.acks": "all",
    "producer.compression.type": "lz4",
    "producer.batch.size": 1_000_000,
    "producer.buffer.memory": 64 << 20,
}
_CONNECTOR: Final = {
    "decimal.handling.mode": "string",
    "max.batch.size": 32_768,
    "max.queue.size": 262_144,
    "poll.interval.ms": 10,
}
UNWRAPPED: Final = {
    "transforms": "unwrap",
    "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
    "transforms.unwrap.delete.tombstone.handling.mode": "tombstone",
    "tombstones.on.delete": "false",  # the one that unwrapping makes is enough
}


def command(
    place: Place, server: str, settings: Mapping[str, object], linger_ms: int = 20
) -> list[str | Path]:
    """Configure a connector of this name, and give the command that runs it."""
    folder = place.folder / server
    folder.mkdir()
    worker = {
        **connect.worker(place.kafka.bootstrap, folder, free_port()),
        **_WORKER,
        "producer.linger.ms": linger_ms,
    }
    source = {
        **connect.postgres_source(server, place.postgres.port),
        "publication.name": server,
        **_CONNECTOR,
        **settings,
    }
    files = (
        connect.write_properties(folder / "worker.properties", worker),
        connect.write_properties(folder / "connector.properties", source),
    )
    return connect.command(jars(*connect.SOURCE), folder, *files, heap=_HEAP)
