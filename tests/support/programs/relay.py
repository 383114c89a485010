"""walstreams that pass records on, and Kafka as they find and leave it."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from tests.support.oracles.topic_reader import Record
from tests.support.programs.walstream import SINK, SOURCE, Walstream


@dataclass
class Chain(Walstream):
    """A kafka source and its sink; `dsn` is the upstream's bootstrap."""

    topics: Sequence[str] = ()
    group: str = ""
    beside: Mapping[str, Any] = field(default_factory=dict)  # another sink's topic keys

    def document(self) -> dict[str, Any]:
        """Give the configuration as it will be written."""
        producer = {"bootstrap.servers": self.bootstrap}
        consumer = {
            "bootstrap.servers": self.dsn,
            "topic.metadata.refresh.interval.ms": 500,
            **self.source.get("consumer", {}),
        }
        source = {
            "kind": "kafka",
            "topics": list(self.topics),
            "group": self.group or f"{self.prefix}group",
            "sinks": [SINK, *(["beside"] if self.beside else [])],
            **self.source,
        }
        sink = {"kind": "kafka", "topic": self.prefix + "copy.{schema}.{table}"}
        return {
            "state": str(self.folder / "state"),
            "http": {"listen": ""},
            **self.top,
            "sources": {SOURCE: {**source, "consumer": consumer}},
            "sinks": {
                SINK: {**sink, "producer": producer, **self.sink},
                **(
                    {"beside": {**sink, "producer": producer, **self.beside}}
                    if self.beside
                    else {}
                ),
            },
        }


Shown = tuple[int, bytes | None, bytes | None, list[tuple[str, bytes]], int]


def shown(records: Sequence[Record], topic: str) -> list[Shown]:
    """Give all of a topic's records that passes on, partition by partition."""
    return [
        (one.partition, one.key, one.value, one.headers, one.timestamp)
        for one in sorted(records, key=lambda one: (one.partition, one.offset))
        if one.topic == topic
    ]


def stored(bootstrap: str, group: str, topic: str, partitions: int) -> list[int]:
    """Read a group's offsets; -1001 where there is none."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": group})
    try:
        where = [TopicPartition(topic, number) for number in range(partitions)]
        return [one.offset for one in consumer.committed(where, timeout=30)]
    finally:
        consumer.close()


@dataclass
class Shipped(Walstream):
    """A configuration of docs/examples as it stands, but for what tests share."""

    example: Path = Path()

    def document(self) -> dict[str, Any]:
        """Give the configuration as it will be written."""
        document = tomllib.loads(self.example.read_text("utf-8"))
        for source in document["sources"].values():
            source.update(self.source)
        return {
            "state": str(self.folder / "state"),
            "http": {"listen": ""},
            **self.top,
            **document,
        }
