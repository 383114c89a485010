"""Job of a poll for the driver: ranges of one table, and the targets of their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from walstream.config import Config, KafkaSinkConfig, SqlSource
from walstream.errors import ConfigError
from walstream.kafka.bulk_producer import BULK, Outgoing
from walstream.kafka.producer_config import producer_properties
from walstream.kafka.topic import Topic
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.shape import SqlTableShape
from walstream.sources.sql.row_form import row_form
from walstream.sources.sql.table_reader import TableReader
from walstream.sources.sql.task import PollTask, Range, RowTarget
from walstream.spark.leash import Leash

if TYPE_CHECKING:
    from walstream.sources.sql.row_schema_ids import IdsBySink


@dataclass(frozen=True, slots=True)
class PollOrder:
    """Ranges of one table."""

    source: str
    table: str  # as configured
    shape: SqlTableShape
    topics: Mapping[str, Topic]  # the table's, by sink
    chunks: Sequence[Range]
    lock: str
    at_once: int
    ids: "IdsBySink" = field(default_factory=dict, repr=False)  # of records' schemas

    @property
    def in_process(self) -> bool:
        """Return False: a few rows are read by the poller, all others by Spark."""
        return False

    def task(self, config: Config, leash: Leash | None) -> PollTask:
        source = config.sources[self.source]
        if not isinstance(source, SqlSource):
            raise ConfigError(f"source {self.source!r} is not a sql source")
        named = source.name_in_records(self.source)
        targets = []
        for name, topic in self.topics.items():
            sink = config.sinks[name]
            if isinstance(sink, KafkaSinkConfig):
                properties = {**BULK, **sink.producer}
                form = row_form(sink, named, self.table, topic.name, self.shape)
                if form is not None:
                    form = replace(form, ids=self.ids.get(name, {}))
                targets.append(
                    RowTarget(
                        Outgoing(
                            name,
                            producer_properties(properties, topic.limit, topic.limit),
                        ),
                        topic.name,
                        topic.partitions,
                        topic.limit,
                        sink.partitioner,
                        topic.advice,
                        form,
                    )
                )
        return PollTask(
            named,
            self.table,
            TableReader(Database(source.url), self.shape),
            tuple(targets),
            leash,
            config.secrets_of(self.source, self.topics),
        )
