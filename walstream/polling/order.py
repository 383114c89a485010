"""What the driver is told of a poll: ranges of one table, and where their rows go."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from walstream.config import Config, KafkaSink, SqlSource
from walstream.errors import ConfigError
from walstream.kafka.failure import failure
from walstream.kafka.producer import producer_properties
from walstream.kafka.topic import Topic
from walstream.polling.reader import TableReader
from walstream.spark.leash import Leash
from walstream.spark.poll import PollTask, Range, RowTarget
from walstream.spark.sender import BULK, Outgoing
from walstream.sql.engine import Database
from walstream.sql.shape import Shape


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
