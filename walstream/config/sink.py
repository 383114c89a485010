"""The kinds of sinks, key by key, with their defaults.

All kinds route and encode; `log` prints what a Kafka sink would send, and `discard`
throws it away.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from walstream import plugins
from walstream.config.debezium import (
    HEARTBEAT_TOPIC,
    Debezium,
    Encoding,
    with_defaults,
)
from walstream.config.field import (
    Duration,
    Embedded,
    Format,
    OptionalNames,
    OptionalTopicName,
    Properties,
    Section,
    SourceTopic,
    StopOrTopic,
    TopicName,
    TopicTemplate,
    TransactionInfo,
)
from walstream.config.handler import Handler
from walstream.config.messages import Messages
from walstream.config.oauth import OAuth, with_oauth
from walstream.config.registry import Registry

KeyForm = Literal["json", "concat", "event", "pkey", "pkeyus", "tspkey", "tspkeyus"]
Partitioner = Literal[
    "murmur2_random",
    "murmur2",
    "consistent",
    "consistent_random",
    "fnv1a",
    "fnv1a_random",
    "crc32",
    "random",
]
EMBEDDED: Final[Embedded] = ["schema", "table", "committime"]


class MappedTopic(Section):
    name: TopicName = Field(description="The topic of this table.")
    partition_key: OptionalNames = Field(
        default=None,
        description="Columns of the record's key; default: the primary key.",
    )


class HandledSink(Section):
    handlers: list[Handler] = Field(
        default=[],
        description="Handlers that each op passes through first, in this order.",
    )
    batch_rows: int = Field(
        default=500,
        ge=1,
        le=100_000,
        description="Maximum number of ops per batch through the handlers; if a "
        "handler cannot take one now, the whole batch comes again.",
    )
    batch_interval: Duration = Field(
        default=0.0,
        description=(
            'How long ops wait for others to fill a batch; "0" is one turn of the loop.'
        ),
    )
    verbose: bool = Field(
        default=False, description="Log one line for each op, without values."
    )
    on_failure: Literal["detach", "drop"] = Field(
        default="detach",
        description="What happens to one of several sinks that fails for good or lags "
        "too long: detach gives it a copy of the slot, drop leaves it out for good.",
    )


class RoutedSink(HandledSink):
    format: Format = Field(
        default="op",
        description="Format of a record's value: op, event, tungsten, debezium, "
        "debezium_row, row, or one that an installed package adds.",
    )
    topic: TopicTemplate = Field(
        default="{schema}.{table}",
        description="Topic of tables without a mapping, of {source}, {schema} and "
        '{table}; "" sends only mapped tables.',
    )
    fallback_topic: OptionalTopicName = Field(
        default="",
        description='Topic of ops without another topic; "" drops and counts them.',
    )
    topics: dict[str, MappedTopic] = Field(
        default={},
        description="Topics by table: schema.table, the bare name, or a pattern.",
    )
    topics_file: str = Field(
        default="",
        description="A JSON file with more such topics; those in this file take "
        "precedence.",
    )
    strict: bool = Field(
        default=False,
        description="Every published table must be mapped and have REPLICA IDENTITY "
        "FULL.",
    )
    key: KeyForm = Field(
        default="json",
        description="Format of a record's key: json, concat, event, pkey, pkeyus, "
        "tspkey or tspkeyus.",
    )
    embed: Embedded = Field(
        default=EMBEDDED,
        description="What a record of format tungsten has besides its row.",
    )
    on_truncate: Literal["send", "skip", "stop"] = Field(
        default="send",
        description="What a TRUNCATE does: send, skip or stop; default of the formats "
        "debezium: skip.",
    )
    split_key_updates: bool = Field(
        default=True,
        description="Send an update that changes the key as a delete and an insert.",
    )
    debezium: Debezium = Field(
        default=Debezium(), description="Options of the formats debezium."
    )

    @model_validator(mode="before")
    @classmethod
    def _default_by_format(cls, table: object) -> object:
        return with_defaults(table) if isinstance(table, Mapping) else table


class KafkaSinkConfig(RoutedSink):
    kind: Literal["kafka"] = Field(
        description="Kind of the sink: kafka, log or discard."
    )
    encoding: Encoding = Field(
        default="json",
        description="Encoding of the formats op, debezium and row: json, or with the "
        "schemas in a registry avro, json_schema, protobuf.",
    )
    registry: Registry = Field(
        default=Registry(), description="Schema registry of the encodings but json."
    )
    partitioner: Partitioner = Field(
        default="murmur2_random",
        description="Any of librdkafka's partitioners, and crc32 for compatibility.",
    )
    on_too_large: StopOrTopic = Field(
        default="stop",
        description="What happens to a record that is too large for its topic: stop, "
        "or the name of a topic that gets its key, position and table instead.",
    )
    txinfo: TransactionInfo = Field(
        default="none",
        description="Where walstream writes how many rows of each table a transaction "
        "has: none, records (of format tungsten), or a topic's name, with {source}.",
    )
    txinfo_form: Literal["", "walstream", "debezium"] = Field(
        default="",
        description="Records of such a topic: walstream, one for each transaction, or "
        "debezium, its BEGIN and END; default: by the sink's format.",
    )
    txinfo_max_rows: int = Field(
        default=10_000,
        ge=1,
        le=1_000_000,
        description="Largest transaction, in rows, whose records carry it; its rows "
        "wait in memory for the commit.",
    )
    resolved: Duration = Field(
        default=0.0,
        description="How often the topic of txinfo says up to which LSN all is "
        'delivered, and up to which offsets that is; "0" is never.',
    )
    messages: Messages = Field(
        default=Messages(),
        description="Logical messages (pg_logical_emit_message) as records.",
    )
    tombstones: bool = Field(
        default=False,
        description="Send a null value after each delete, for compacted topics; "
        "default of the formats debezium: true.",
    )
    skip_delivered: bool = Field(
        default=True,
        description="Leave out what Kafka has already when a stream begins again, in "
        "the formats op and debezium; false repeats it.",
    )
    delivery: Literal["idempotent", "transactional"] = Field(
        default="idempotent",
        description="How records are written: idempotent, or transactional: in Kafka's "
        "transactions, so that a process that was replaced can no longer write.",
    )
    commit_interval: Duration = Field(
        default=0.1,
        description="Time from one of these transactions to the next, at least; each "
        "ends where one of the source ends.",
    )
    positions_topic: SourceTopic = Field(
        default="walstream-positions-{source}",
        description="Topic in which each of these transactions says how far it is, "
        "with {source}.",
    )
    create_topics: bool = Field(
        default=True, description="Create missing topics; false stops the start."
    )
    topic_partitions: int = Field(
        default=0,
        ge=0,
        le=1_000_000,
        description="Partitions of topics that walstream creates; 0 is the broker's "
        "default.",
    )
    topic_replication: int = Field(
        default=0,
        ge=0,
        le=32767,
        description="Replicas of topics that walstream creates; 0 is the broker's "
        "default.",
    )
    topic_config: Properties = Field(
        default={}, description="Configuration of topics that walstream creates."
    )
    producer: Properties = Field(
        repr=False, description="Properties of librdkafka's producer."
    )
    oauth: OAuth | None = Field(
        default=None, description="Where tokens of SASL/OAUTHBEARER come from."
    )
    at_most_once: bool = Field(
        default=False, description="Allow producer properties that may lose records."
    )
    insecure: bool = Field(
        default=False,
        description="Allow a broker on another host without verified TLS.",
    )

    @model_validator(mode="after")
    def _carry_oauth(self) -> Self:
        self.__dict__["producer"] = with_oauth(self.producer, self.oauth)
        return self

    def txinfo_topic(self, source: str) -> str:
        """Name the topic of a source's transaction information; "": there is none."""
        if self.txinfo in {"none", "records"}:
            return ""
        return self.txinfo.replace("{source}", source)

    @property
    def has_debezium_txinfo(self) -> bool:
        """Return whether the topic of transactions has Debezium's records."""
        return (self.txinfo_form or self.format) in {"debezium", "debezium_row"}

    def asides(self, source: str) -> Iterator[tuple[str, str]]:
        """Yield the topics of a source's records that are no ops, with their options.

        That of messages may be a pattern of * and ?.
        """
        name = self.debezium.name or source
        if topic := self.txinfo_topic(source):
            yield "txinfo", topic
        for topic in self.messages.topics_in(self.format, source, name):
            yield "messages", topic
        if self.debezium.heartbeat:
            yield "debezium", f"{HEARTBEAT_TOPIC}.{name}"
        if self.is_transactional:
            yield "positions_topic", self.positions_topic_of(source)

    @property
    def is_transactional(self) -> bool:
        """Return whether records are written in Kafka's transactions."""
        return self.delivery == "transactional"

    def positions_topic_of(self, source: str) -> str:
        """Name the topic of what its transactions have of a source."""
        return self.positions_topic.replace("{source}", source)


class LogSink(RoutedSink):
    kind: Literal["log"] = Field(description="Kind of the sink: kafka, log or discard.")
    values: bool = Field(
        default=False, description="Print each record's key and value, too."
    )


class DiscardSink(RoutedSink):
    kind: Literal["discard"] = Field(
        description="Kind of the sink: kafka, log or discard."
    )


class PackageSink(HandledSink):
    kind: str = Field(
        description="Name under which an installed package registers the sink."
    )
    options: dict[str, Any] = Field(
        default={}, repr=False, description="Options of the package's sink."
    )


PluginOptions = Mapping[str, object]
"""Options of a package's sink: it alone knows what the keys mean."""

BUILT: Final = ("kafka", "log", "discard")
Sink = Annotated[
    Annotated[KafkaSinkConfig, Tag("kafka")]
    | Annotated[LogSink, Tag("log")]
    | Annotated[DiscardSink, Tag("discard")]
    | Annotated[PackageSink, Tag("package")],
    Discriminator(plugins.tag(plugins.SINKS, BUILT)),
]
