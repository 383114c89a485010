"""What the driver is told of a poll: ranges of one table, and where their rows go."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from walstream.config import Config, KafkaSink, SqlSource
from walstream.errors import ConfigError
from walstream.kafka.bulk_producer import BULK, Outgoing
from walstream.kafka.errors import failure
from walstream.kafka.producer_config import producer_properties
from walstream.kafka.topic import Topic
from walstream.sources.sql.database import query
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.shape import Shape
from walstream.sources.sql.database.values import Values
from walstream.sources.sql.task import Block, PollTask, Range, RowTarget
from walstream.spark.leash import Leash


@dataclass(frozen=True, slots=True)
class TableReader:
    """Reads rows of one table; picklable."""

    database: Database
    shape: Shape

    @property
    def columns(self) -> Sequence[str]:
        return self.shape.names

    @property
    def key(self) -> int:
        return self.shape.key_place

    def ahead(self, low: int, high: int, limit: int | None) -> Iterator[Block]:
        return self._blocks(
            lambda connection: query.rows(connection, self.shape, low, high, limit)
        )

    def late(self, keys: Sequence[int]) -> Iterator[Block]:
        return self._blocks(
            lambda connection: query.picked(connection, self.shape, keys)
        )

    def _blocks(
        self, read: Callable[[Any], Iterable[list[tuple[object, ...]]]]
    ) -> Iterator[Block]:
        with self.database.session() as connection:
            values = Values(self.shape, connection.dialect)
            for block in read(connection):
                yield values.convert(block)


@dataclass(frozen=True, slots=True)
class PollOrder:
    """Ranges of one table."""

    source: str
    table: str  # as configured
    shape: Shape
    topics: Mapping[str, Topic]  # the table's, by sink
    chunks: Sequence[Range]
    lock: str
    at_once: int

    def task(self, config: Config, leash: Leash | None) -> PollTask:
        source = config.sources[self.source]
        if not isinstance(source, SqlSource):
            raise ConfigError(f"source {self.source!r} is no sql source")
        targets = []
        for name, topic in self.topics.items():
            sink = config.sinks[name]
            if isinstance(sink, KafkaSink):
                properties = {**BULK, **sink.producer}
                targets.append(
                    RowTarget(
                        Outgoing(
                            name,
                            failure,
                            producer_properties(properties, topic.limit, topic.limit),
                        ),
                        topic.name,
                        topic.partitions,
                        topic.limit,
                        sink.partitioner,
                        topic.advice,
                    )
                )
        return PollTask(
            source.name_in_records(self.source),
            self.table,
            TableReader(Database(source.url), self.shape),
            tuple(targets),
            leash,
            config.secrets_of(self.source, self.topics),
        )
