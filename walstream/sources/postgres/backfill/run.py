"""One source's backfill, from its record to its end.

Under a snapshot of a slot: what committed below its point is in it. So the rows stand
in Kafka between the stream up to that point and the stream from there on.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

import structlog

from walstream.config import LogSink
from walstream.errors import Repair, Transient
from walstream.lsn import show
from walstream.op import Table
from walstream.postgres import slot as slots
from walstream.postgres.catalog import TableFacts
from walstream.postgres.snapshot_holder import Holder
from walstream.sources.postgres.backfill import fencing, prerequisites
from walstream.sources.postgres.backfill.chunk import Chunk
from walstream.sources.postgres.backfill.job import Job
from walstream.sources.postgres.backfill.losses import BackfillLosses
from walstream.sources.postgres.backfill.plan import plan
from walstream.sources.postgres.backfill.progress import BackfillProgress, Elsewhere
from walstream.sources.postgres.backfill.publication_filter import (
    KeyedTable,
    NoSuchTable,
    let_through,
)
from walstream.sources.postgres.backfill.reader import SnapshotDatabase, under_snapshot
from walstream.sources.postgres.backfill.site import Site, Surroundings
from walstream.sources.postgres.backfill.status import asking_again
from walstream.sources.postgres.backfill.stored_progress import StoredProgress
from walstream.sources.postgres.backfill.task_factory import (
    SnapshotOrder,
    TaskSnapshot,
)
from walstream.spark.leash import await_orphans
from walstream.spark.outcome import ChunkDone, ChunkFailed
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT, LSN, REPAIR, SINK, SLOT, TABLE

_LOOK_EVERY_S: Final = 5.0
_log = structlog.get_logger()


class SnapshotBackfill:
    """Brings what is left of a source's backfill to its end."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._book = StoredProgress(site.positions)
        self._looked = 0.0
        self._holder: Holder | None = None
        self._losses = BackfillLosses()

    @property
    def pending(self) -> bool:
        """Return whether there are rows left to read, and wanted."""
        wanted = self._site.asked or self._site.source.backfill != "never"
        return wanted and bool(self._wanted)

    @property
    def _wanted(self) -> set[str]:
        record = self.record
        return set(record.tables) if record else set()

    @property
    def places(self) -> list[tuple[str, str]]:
        """Name, by schema and name, what is left to read."""
        parted = (name.partition(".") for name in sorted(self._wanted))
        return [(schema, name) for schema, _, name in parted]

    def known(
        self, captured: Mapping[str, TableFacts], facts: Mapping[str, TableFacts]
    ) -> dict[str, TableFacts]:
        """Add what is left to read to what is captured: a branch's leaf may not be."""
        left = self._wanted & facts.keys()
        return {**captured, **{name: facts[name] for name in sorted(left)}}

    def strange(self, known: Mapping[str, TableFacts]) -> set[str]:
        """Name what is left to read, and not known; views aside."""
        record = self.record
        others = record.others if record else ()
        return self._wanted - known.keys() - set(others)

    @property
    def record(self) -> BackfillProgress | None:
        return self._book.record

    def begin(self, lsn: int, tables: Iterable[str]) -> dict[str, object]:
        """Return the documents of a new backfill, to be stored with the position.

        Without an `lsn` there is none: nothing will be streamed. Of tables with a
        condition in the configuration, a part is read.
        """
        former = self.record
        before = former.elsewhere if former else None
        tables = tuple(tables)
        # what is streamed from here on is in each later snapshot, too
        begun = dict.fromkeys(tables) if lsn else {}
        return self._book.begin(
            BackfillProgress(
                lsn,
                tables,
                elsewhere=before,
                begun=begun,
                where={
                    name: sql
                    for name, sql in self._site.source.backfill_where.items()
                    if name in tables
                },
            )
        )

    def want_again(self) -> None:
        """Want the tables once more that were given up."""
        record = self.record
        if record is not None:
            for name in record.failed:
                where = record.where.get(name, "")
                record = record.wanting([name], anew=False, where=where)
            self._book.store(record)

    def check_complete(self) -> None:
        """Raise ChunkFailed when some table was given up."""
        record = self.record
        failed = record.failed if record else {}
        if failed:
            name = next(iter(failed))
            again = asking_again(self._site.name, failed)
            if self._site.source.backfill == "only":
                again = "walstream run"
            raise ChunkFailed(
                f"{len(failed)} tables were not backfilled: {failed[name]}",
                hint="fix that, then read them again",
                repair=Repair(command=again),
            )

    def await_orphans(self) -> bool:
        """Wait until no task of this machine can send rows; False: a stop came."""
        return await_orphans(self._site.lock, self._site.stop)

    @property
    def unfenced(self) -> bool:
        """Return whether tasks that ran elsewhere may still send rows."""
        record = self.record
        return record is not None and record.elsewhere is not None

    def fence(self, header: bytes) -> None:
        """See that none of those can; `header` is that of the first records."""
        record = self.record
        if record is None or record.elsewhere is None:
            return
        site = self._site
        fencing.fence(site.config, site.name, record.elsewhere, header, site.stop)
        self._book.store(replace(record, elsewhere=None))

    def run(self, holder: Holder, around: Surroundings) -> bool:
        """Send every row that is left, under this snapshot; False: a stop came first.

        What is streamed from now on must begin at the holder's point.
        """
        record = self.record
        if record is None:
            return True
        lsn = holder.point - 1
        for name in sorted(self.strange(around.facts)):
            _log.warning("table is gone: its rows are not sent", **{TABLE: name})
        wishes = self._wishes(record, around)
        keys = {name: wish.key for name, wish in wishes.items()}
        self._book.store(record.under(lsn, keys))
        chunks = self._plan(holder, around, wishes)
        self._holder = holder
        record = (self.record or record).beginning(
            {name: keys[name] for name in dict.fromkeys(one.title for one in chunks)}
        )
        in_process = prerequisites.is_small(
            self._site.config, sum(one.size for one in chunks)
        )
        if chunks and self._site.elsewhere and not in_process:
            elsewhere = Elsewhere(holder.session, chunks[-1].number)
            record = replace(record, elsewhere=elsewhere)
        self._book.store(record)  # before the first row
        self._empty(record, chunks, around)
        job = self._job(holder, around, chunks, in_process=in_process)
        _log.info(
            "backfill begins",
            **{LSN: show(holder.point)},
            tables=len(record.tables),
            chunks=len(chunks),
            by="one process" if in_process else "Spark",
        )
        began = runtime.monotonic()
        before, gauge = record.rows, self._site.gauge
        gauge.backfill = lambda: replace(job.progress.report(), rows_before=before)
        try:
            # what was given up may still run: the stream begins when nothing does
            if not (job.run(self._site.stop) and self.await_orphans()):
                return False
        finally:
            gauge.backfill = None
            gauge.backfilled += job.progress.rows
            self._losses.tell()
        self._holder = None
        holder.close()
        self.fence(around.header)  # also of what Spark took for dead, and tried again
        given_up = self.record.failed if self.record else {}
        _log.info(
            "backfill ended",
            tables=len(set(record.tables) - given_up.keys()),
            rows=job.progress.rows,
            seconds=round(runtime.monotonic() - began, 1),
            given_up=sorted(given_up),
        )
        return True

    def _job(
        self,
        holder: Holder,
        around: Surroundings,
        chunks: Sequence[Chunk],
        *,
        in_process: bool,
    ) -> Job:
        site = self._site
        ids = around.ids({one.relation.table for one in chunks})
        order = SnapshotOrder(
            source=site.name,
            snapshot=TaskSnapshot(holder.name, holder.point - 1, around.header, ids),
            topics=around.topics,
            chunks=chunks,
            lock=str(site.lock),
            in_process=in_process,
        )
        return Job(order, self, site.driver, around.empty)

    def _plan(
        self, holder: Holder, around: Surroundings, wishes: Mapping[str, KeyedTable]
    ) -> list[Chunk]:
        """Cut the rest into chunks; leave out what can no longer be read."""
        record = self.record
        if record is None:
            return []
        database = SnapshotDatabase(self._site.source.dsn)
        with under_snapshot(database, holder.name) as connection:
            planned = plan(
                connection,
                self._unless_stopped(wishes[name] for name in record.tables),
                through=let_through(connection, around.publications),
                first=len(record.replace) + 1,
            )
        for name, error in planned.refused.items():
            text = str(error.args[0])
            if isinstance(error, NoSuchTable):
                _log.warning(text, **{TABLE: name})
                self.done(name, 0)
            else:
                said = {TABLE: name, ERROR: text, HINT: error.hint}
                if error.repair.sql:
                    said[REPAIR] = error.repair.sql
                _log.error("table is skipped: it cannot be read", **said)
                self.given_up(name, text)
        return planned.chunks

    def _wishes(
        self, record: BackfillProgress, around: Surroundings
    ) -> dict[str, KeyedTable]:
        """Return what is read of each table that is left, and there."""
        there = {*around.facts, *record.others}
        return {
            name: around.wish(name, record.where.get(name, ""))
            for name in record.tables
            if name in there
        }

    def _unless_stopped(self, wishes: Iterable[KeyedTable]) -> Iterator[KeyedTable]:
        for wish in wishes:
            if self._site.stop.requested:
                raise Transient("stopped while the backfill was being planned")
            yield wish

    def _empty(
        self, record: BackfillProgress, chunks: Sequence[Chunk], around: Surroundings
    ) -> None:
        """Make readers empty what is replaced; leave out what has no rows to read."""
        tables = {one.relation.table.full_name: one.relation.table for one in chunks}
        for number, name in enumerate(record.replace, 1):
            table = tables.get(name)
            if table is None:
                facts = around.facts[name]
                table = Table(facts.schema, facts.name, facts.columns)
            around.empty(table, record.lsn, number)
        for name in record.tables:
            if name not in tables:  # a partition root without a leaf
                self.done(name, 0)

    def done(self, table: str, rows: int) -> None:
        """Note that a table's rows are delivered."""
        self._book.done(table, rows)

    def counted(self, chunk: Chunk, done: ChunkDone) -> None:
        """Count what went another way; tell what the sinks `log` do not tell."""
        for sink, tally in done.tallies.items():
            self._site.gauge.tallies.add(sink, tally)
        for sink, losses in done.losses.items():
            self._losses.add(sink, losses)
        for name in self._site.source.sinks:
            if isinstance(self._site.config.sinks[name], LogSink):
                _log.info(
                    "ops of a backfill",
                    **{SINK: name, TABLE: chunk.title},
                    kind="insert",
                    first_seq_id=chunk.first_seq_id,
                    rows=done.rows,
                )

    def given_up(self, table: str, why: str) -> None:
        """Note that a table's rows cannot be read."""
        self._book.given_up(table, self._site.config.secrets.scrub(why))

    def look(self, *, now: bool = False) -> None:
        """See that the snapshot is still held, and what the slot holds meanwhile."""
        if not now and runtime.monotonic() - self._looked < _LOOK_EVERY_S:
            return
        self._looked = runtime.monotonic()
        if self._holder is not None:
            self._holder.check()
        self._site.see_slot()


def hold(site: Site, *, tell: Callable[[str], None]) -> Holder:
    """Hold the snapshot of a temporary slot, which is gone when this returns."""
    source = site.source
    name = f"{source.slot[:54]}_backfill"
    _log.debug("a temporary slot is created", **{SLOT: name})
    created = slots.create(
        source.dsn,
        slots.SlotSpec(name, temporary=True),
        slots.WaitPolicy(site.stop.event, tell),
    )
    return Holder.of_new_slot(source.dsn, created, source.slot)
