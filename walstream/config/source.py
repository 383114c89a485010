"""The three kinds of sources, key by key, with their defaults."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import Discriminator, Field, Tag, model_validator

from walstream import plugins
from walstream.config.field import (
    ByteSize,
    Condition,
    DistinctNames,
    Dsn,
    Duration,
    EngineUrl,
    Names,
    OptionalDuration,
    PasswordCommand,
    PoisonPolicy,
    PositiveByteSize,
    PositiveDuration,
    Properties,
    PublicationName,
    Section,
    SlotName,
    StartKey,
    TableName,
    TablePattern,
    TopicName,
)
from walstream.config.oauth import OAuth, with_oauth
from walstream.config.password_command_dsn import carry
from walstream.telemetry.human import (
    SIZE_UNITS,
)

_MAX_SLOT_NAME: Final = 63  # bytes, all of them ASCII


class _Source(Section):
    sinks: Names = Field(description="Names of the sinks that it feeds.")


class PostgresSource(_Source):
    kind: Literal["postgres"] = Field(
        description="Kind of the source: postgres, sql or kafka."
    )
    dsn: Dsn = Field(
        repr=False,
        description="Connection string of libpq: a URI, or key=value pairs.",
    )
    password_command: PasswordCommand = Field(
        default=[],
        description="A command and its arguments that print the password; walstream "
        "runs it at each connection, without a shell.",
    )
    slot: SlotName = Field(
        default="walstream", description="The replication slot; one for each source."
    )
    publication: PublicationName = Field(
        default="walstream",
        description="The publication; tables without a replica identity go into its "
        "twin, which adds _insert to the name.",
    )
    tables: list[TablePattern] = Field(
        default=["public.*"],
        description="Patterns of schema.table to publish; [] uses the publication as "
        "it is.",
    )
    exclude: list[TablePattern] = Field(
        default=[],
        description="Patterns of schema.table to leave out of `tables`.",
    )
    columns: dict[TableName, Names] = Field(
        default={},
        description="Columns to publish of tables, by schema.table, as PostgreSQL's "
        "column lists; the other tables are published whole.",
    )
    generated: Literal["none", "stored"] = Field(
        default="none",
        description="Whether stored generated columns are published (PostgreSQL 18 and "
        "later).",
    )
    on_publication_change: Literal["stop", "reread"] = Field(
        default="stop",
        description="What happens after a change of the publication that may have "
        "kept rows out of the stream: stop the source, or read the tables again while "
        "it streams (reread).",
    )
    backfill: Literal["initial", "never", "only"] = Field(
        default="initial",
        description='Whether existing rows are sent before the stream ("initial"), '
        'not at all ("never"), or alone ("only").',
    )
    backfill_where: dict[TableName, Condition] = Field(
        default={},
        description="Conditions in SQL, by schema.table: their first backfill sends "
        "only the rows for which they are true.",
    )
    backfill_by_message: list[TablePattern] = Field(
        default=[],
        description="Patterns of tables of which a logical message may request a "
        "backfill: any role of the database can write one.",
    )
    retain: ByteSize = Field(
        default=0,
        description="WAL kept behind the position, for `walstream positions rewind`.",
    )
    heartbeat: OptionalDuration = Field(
        default=0.0,
        description=(
            'How often walstream writes a message into the WAL to measure the lag; "" '
            "never."
        ),
    )
    alarm_retained_wal: PositiveByteSize = Field(
        default=10 * SIZE_UNITS["GiB"],
        description="More WAL than this held by the slot turns /status red.",
    )
    alarm_spill: ByteSize = Field(
        default=10 * SIZE_UNITS["GiB"],
        description="More than this of large transactions in the slot's files turns "
        "/status red; 0 never.",
    )
    max_rows_per_second: int = Field(
        default=0,
        ge=0,
        description="Most rows that the stream reads per second; 0 means no limit.",
    )
    max_bytes_per_second: ByteSize = Field(
        default=0,
        description="Most bytes that the stream reads per second, as PostgreSQL sends "
        'them: "10MiB"; "0" means no limit.',
    )
    toast_on_key_change: Literal["read", "stop"] = Field(
        default="read",
        description="Whether TOAST values that a key change leaves out are read from "
        "the table, or stop the source.",
    )
    allow_synchronous: bool = Field(
        default=False,
        description="Stream even if synchronous_standby_names names walstream: "
        "commits then wait for Kafka.",
    )
    detach_after: PositiveDuration = Field(
        default=60.0,
        description="One of several sinks that lags for longer gets a copy of the "
        "slot.",
    )
    verbose: bool = Field(
        default=False, description="Log one line for each op, without values."
    )
    failover: bool = Field(
        default=False,
        description="Also keep the slot on standbys (PostgreSQL 17 and later).",
    )
    encoding: str = Field(
        default="",
        description="The real encoding of a SQL_ASCII database, which is refused "
        "without it.",
    )
    insecure: bool = Field(
        default=False,
        description="Allow a server on another host without verified TLS.",
    )

    @model_validator(mode="after")
    def _carry_command(self) -> Self:
        self.__dict__["dsn"] = carry(self.dsn, self.password_command)
        return self

    @property
    def slots(self) -> list[str]:
        """The slot, and the copies that its sinks may get."""
        copies = [slot_copy(self.slot, sink) for sink in self.sinks]
        return [self.slot, *(copies if len(copies) > 1 else ())]


def slot_copy(slot: str, sink: str) -> str:
    """Name the copy of a slot that a detached sink gets."""
    return f"{slot}_{sink}".replace("-", "_")[:_MAX_SLOT_NAME]


class PolledTable(Section):
    primary_key: str = Field(
        min_length=1, description="The increasing integer key to poll by."
    )
    fields: DistinctNames = Field(
        default=[],
        description="Columns to read, besides the key; [] reads all.",
    )
    limit: int = Field(
        default=0,
        ge=0,
        description="Maximum number of rows per poll; 0 means no limit.",
    )
    start: StartKey = Field(
        default="beginning",
        description="Where the first poll starts: beginning, end (rows that come from "
        "then on), or after:KEY.",
    )
    parallelism: int = Field(
        default=1,
        ge=1,
        le=64,
        description="Ranges of keys that a poll reads in parallel; more than 1 loses "
        "the order across keys.",
    )
    gap_timeout: Duration = Field(
        default=3600.0,
        description="How long walstream looks for a missing key, whose row may commit "
        'late; "0" never.',
    )
    max_gaps: int = Field(
        default=100_000,
        ge=1,
        le=1_000_000,
        description="Maximum number of open gaps between keys; while there are more, "
        "no new rows are read.",
    )
    on_restart: Literal["stop", "reread"] = Field(
        default="stop",
        description="If its keys start again (TRUNCATE, a restored table): stop makes "
        "the table wait for an operator, reread reads it from its first key.",
    )

    @property
    def start_after(self) -> int | None:
        """The key of start = "after:KEY"."""
        word, _, key = self.start.partition(":")
        return int(key) if word == "after" else None


class SqlSource(_Source):
    kind: Literal["sql"] = Field(
        description="Kind of the source: postgres, sql or kafka."
    )
    url: EngineUrl = Field(repr=False, description="URL of a SQLAlchemy engine.")
    password_command: PasswordCommand = Field(
        default=[],
        description="A command and its arguments that print the password; walstream "
        "runs it at each connection, without a shell.",
    )
    name: str = Field(
        default="", description='Source name in its records; "" is the source\'s own.'
    )
    poll_interval: PositiveDuration = Field(
        default=5.0, description="Pause between two polls."
    )
    tables: dict[TableName, PolledTable] = Field(
        min_length=1, description="The append-only tables to poll, by name."
    )
    insecure: bool = Field(
        default=False,
        description="Allow a server on another host without verified TLS.",
    )

    @model_validator(mode="after")
    def _carry_command(self) -> Self:
        self.__dict__["url"] = carry(self.url, self.password_command)
        return self

    def name_in_records(self, source: str) -> str:
        """Return the name that its records carry, where this is the source's."""
        return self.name or source


class KafkaSource(_Source):
    kind: Literal["kafka"] = Field(
        description="Kind of the source: postgres, sql or kafka."
    )
    topics: Annotated[list[TopicName], Field(min_length=1)] = Field(
        description="Topics of another walstream to relay."
    )
    group: str = Field(
        default="walstream", min_length=1, description="The consumer group."
    )
    on_poison: PoisonPolicy = Field(
        default="stop",
        description="What happens to a malformed record: stop, skip, or the name of a "
        "topic that gets it.",
    )
    consumer: Properties = Field(
        repr=False, description="Properties of librdkafka's consumer."
    )
    oauth: OAuth | None = Field(
        default=None, description="Where tokens of SASL/OAUTHBEARER come from."
    )
    insecure: bool = Field(
        default=False,
        description="Allow a broker on another host without verified TLS.",
    )

    @model_validator(mode="after")
    def _carry_oauth(self) -> Self:
        self.__dict__["consumer"] = with_oauth(self.consumer, self.oauth)
        return self


class PackageSource(_Source):
    kind: str = Field(
        description="Name under which an installed package registers the source."
    )
    options: dict[str, Any] = Field(
        default={}, repr=False, description="Options of the package's source."
    )
    verbose: bool = Field(
        default=False, description="Log one line for each op, without values."
    )


BUILT: Final = ("postgres", "sql", "kafka")
Source = Annotated[
    Annotated[PostgresSource, Tag("postgres")]
    | Annotated[SqlSource, Tag("sql")]
    | Annotated[KafkaSource, Tag("kafka")]
    | Annotated[PackageSource, Tag("package")],
    Discriminator(plugins.tag(plugins.SOURCES, BUILT)),
]
