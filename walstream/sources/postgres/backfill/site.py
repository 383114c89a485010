"""Site of a source's backfill: its configuration, and facts of the start."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from walstream.config import Config, PostgresSource
from walstream.errors import RESET, SlotLost, Transient
from walstream.op import Table
from walstream.pipeline.ports import SinkTopic, StateStore
from walstream.pipeline.shutdown import Stop
from walstream.postgres import slot as slots
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import session
from walstream.sources.postgres.backfill.publication_filter import KeyedTable
from walstream.sources.postgres.backfill.task_factory import SinkIds, wanted
from walstream.sources.stream_metrics import StreamMetrics
from walstream.spark import session as spark


@dataclass(frozen=True, slots=True)
class Site:
    """Source of a backfill, and its resources."""

    config: Config
    name: str  # of the source
    source: PostgresSource
    positions: StateStore
    gauge: StreamMetrics
    stop: Stop
    driver: str  # the address of who runs Spark
    asked: bool = False  # an operator asks for what is left, whatever is configured
    hear: Callable[[str, bytes], None] | None = None
    """Hears of each logical message of the stream; None: nobody asks for them."""

    @property
    def elsewhere(self) -> bool:
        """Return True if tasks run on other machines, or may."""
        return spark.slots(self.config.spark.master) is None

    @property
    def lock(self) -> Path:
        """The file that every task of this machine holds, shared."""
        return Path(self.config.state) / self.name / "spark.lock"

    def see_slot(self) -> None:
        """Measure what the slot holds; raise SlotLost once it is of no more use.

        A server without room for one more session tells the next time.
        """
        slot = self.source.slot
        with suppress(Transient), session(self.source.dsn) as connection:
            health = slots.health(connection, slot)
            self.gauge.see(health)
            follows = self.source.backfill != "only"  # does the stream?
            if health is not None and health.lost and follows:
                raise SlotLost(
                    f"slot {slot!r} cannot be read ({health.lost}): the stream cannot "
                    "begin where the backfill ends",
                    hint="a setting of the server's ended it: max_slot_wal_keep_size or"
                    " idle_replication_slot_timeout; the next backfill begins again",
                    repair=RESET.of_source(self.name),
                )


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts of a stream's start."""

    facts: Mapping[str, TableFacts]
    publications: Sequence[str]
    topics: Mapping[str, Mapping[str, SinkTopic]]  # by sink
    header: bytes  # of each first record
    empty: Callable[[Table, int, int], None]
    """Have a table's readers empty it: (table, lsn, chunk number); delivered."""
    ids: Callable[[Iterable[Table]], SinkIds] = lambda _: {}
    """Return the ids of these tables' schemas by sink, once all are known."""
    column_facts: bool = False  # does a sink's format write what only the catalog says?

    def wish(self, name: str, where: str) -> KeyedTable:
        """Return what is read of a table; `where` is the rows' condition; "": all."""
        if name in self.facts:
            found = wanted(self.facts[name], self.publications, facts=self.column_facts)
            return replace(found, where=where)
        schema, _, bare = name.partition(".")
        return KeyedTable(schema, bare, facts=self.column_facts, where=where)
