"""A sql source, as its worker runs it: a thread for each table.

A database that cannot be connected to ends the session, and the worker tries again;
trouble with one table makes that table alone wait. When no table is left that can be
polled, the source ends.
"""

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, Final

import structlog

from walstream.config import SqlSource
from walstream.errors import ConfigError, WalstreamError
from walstream.kafka.bulk_producer_pool import BulkProducerPool
from walstream.kafka.topics import Topics
from walstream.sources.context import SourceContext
from walstream.sources.report import PollReport, SinkReport, TableReport
from walstream.sources.routers import Routers
from walstream.sources.sinks import SinkSet
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.inspector import wish_of
from walstream.sources.sql.poller import Poller, PollingRules
from walstream.sources.sql.progress import (
    Trouble,
    progress_of,
)
from walstream.sources.sql.range_runner import (
    Caution,
    Ends,
    Here,
    IdleConnections,
    Runner,
)
from walstream.sources.sql.row_schema_ids import RowSchemaIds, row_schema_ids
from walstream.sources.sql.table_schemas import TableSchemas
from walstream.sources.sql.table_session import TableSession
from walstream.sources.sql.table_thread import TableHeld, TableThread
from walstream.sources.sql.task import Range
from walstream.sources.sql.task_factory import PollOrder
from walstream.sources.sql.topics import topics_of
from walstream.spark import session
from walstream.spark.leash import await_orphans
from walstream.telemetry import runtime
from walstream.telemetry.counts import SourceCounts
from walstream.telemetry.meter import PollMeter

_LOOK_EVERY_S: Final = 0.05
_REFRESH_S: Final = 60.0
_LEAVE_S: Final = 60.0  # for ranges to end
_log = structlog.get_logger()

Answer = Callable[[str, int], None]
"""Hears "" when what was asked is done; or why it is not, and its exit code."""


class SqlRunner:
    """One source's tables; `run` polls them until a stop, or an error."""

    def __init__(self, context: SourceContext) -> None:
        config, name, positions = context.config, context.name, context.positions
        source = config.sources[name]
        if not isinstance(source, SqlSource):
            raise ConfigError(f"source {name!r} is not a sql source")
        self._config = config
        self._name = name
        self._source = source
        self._database = Database(source.url)
        self._positions = positions
        self._options = context.options
        self._stop = context.stop
        self._sinks = SinkSet(context, {})
        self._routers = Routers(config, name)
        self._lock = Path(config.state) / name / "spark.lock"
        self._line = IdleConnections(context.options.driver)
        self._senders = BulkProducerPool()
        self._topics: Mapping[str, Topics] = {}  # by sink
        self._ids = RowSchemaIds({})
        self._tables: list[TableThread] = []
        self._kept: dict[str, TableReport] = {}  # told, before there are any
        self._meters = {table: PollMeter() for table in source.tables}
        self._asked: deque[Answer] = deque()
        self._awaited: list[tuple[dict[TableThread, int], Answer]] = []
        self._refresh_at = 0.0
        self._refreshes: list[Future[Any]] = []
        self.ended = False  # there is nothing left to do, now or later
        self._polling = False
        self.flowed = False
        self._spark_found = False

    @property
    def phase(self) -> str:
        return "polling" if self._polling else ""

    def say_drained(self, *, drained: bool) -> None:
        """Log how a stop went."""
        if drained:
            _log.info("drained")
        else:
            _log.warning(
                "stopped before everything was delivered: the rest is sent again"
            )

    def run(self) -> bool:
        """Poll until a stop; False: its deadline cut a range short."""
        self._kept = {
            table: progress_of(self._source, table, self._positions).report()
            for table in self._source.tables
        }
        if not self._spark_found:
            session.check_pyspark()
            session.check_java()
            self._spark_found = True
        named = {
            table: topics_of(self._routers, self._name, table)
            for table in self._source.tables
        }
        with ExitStack() as stack:
            with self._database.session():
                pass
            topics = self._find_topics(stack, named.values())
            self._ids = row_schema_ids(
                self._routers.configs, self._positions, self._topics
            )
            stack.callback(self._ids.close)
            # what they still send would come amid what is sent again
            if topics is None or not await_orphans(self._lock, self._stop):
                return True
            ends = Ends(self._stop)
            self._tables = [
                self._table(name, named[name], topics, ends)
                for name in self._source.tables
            ]
            return self._poll(topics, ends)

    def _find_topics(
        self, stack: ExitStack, named: Iterable[Mapping[str, str]]
    ) -> dict[str, Topics] | None:
        """Wait until the tables' topics are known, in every sink; None: a stop came."""
        found: dict[str, Topics] = {}
        wanted: dict[str, set[str]] = {sink: set() for sink in self._routers.configs}
        for topics in named:
            for sink, topic in topics.items():
                wanted[sink].add(topic)
        for sink in wanted:
            found[sink] = self._sinks.topics(sink)
            stack.callback(found[sink].close)
        self._topics = found
        # a list: each is asked, whatever another says
        while not all([found[sink].have(wanted[sink]) for sink in found]):  # noqa: C419
            if self._stop.event.wait(_LOOK_EVERY_S):
                return None
        return found

    def _table(
        self,
        name: str,
        named: Mapping[str, str],
        topics: Mapping[str, Topics],
        ends: Ends,
    ) -> TableThread:
        """Compose what polls one table; `named` are its topics, by sink."""
        rules = self._source.tables[name]
        targets = {sink: topics[sink].known[topic] for sink, topic in named.items()}
        schemas = TableSchemas(
            {sink: self._routers.configs[sink] for sink in named},
            self._source.name_in_records(self._name),
            name,
            named,
        )
        place = TableSession(self._database, wish_of(name, rules), schemas.renew_s)

        def order(parts: Sequence[Range]) -> PollOrder | None:
            wanted = schemas.parts(place.shape)
            if (ids := self._ids.of(wanted, lambda: ends.begin_nothing)) is None:
                return None
            return PollOrder(
                self._name,
                name,
                place.shape,
                targets,
                parts,
                str(self._lock),
                rules.parallelism,
                ids,
            )

        caution = Caution(self._lock.parent, name)
        here = Here(self._config, self._senders, caution)
        runner = Runner(self._line, order, ends, here)
        poller = Poller(
            PollingRules(
                name,
                rules.start if rules.start_after is None else rules.start_after,
                rules.limit,
                rules.parallelism,
                rules.on_restart == "reread",
            ),
            progress_of(self._source, name, self._positions),
            place.connect,
            runner,
        )
        interval_s = None if self._options.poll_once else self._source.poll_interval
        told = partial(self._trouble, name)
        made = TableThread(poller, runner, place, told, interval_s)
        made.measure(self._meters[name])
        return made

    def _trouble(self, table: str, error: WalstreamError) -> Trouble:
        """Make of a table's error what is kept, and told."""
        scrub, repair = self._config.secrets.scrub, error.repair.of_source(self._name)
        words = str(error.args[0])
        if f"table {table}" not in words and f"{table!r}" not in words:
            words = f"table {table!r}: {words}"
        cure = repair.sql
        if not cure and repair.command:
            cure = self._config.command(repair.command)
        return Trouble(scrub(words), scrub(error.hint), scrub(cure))

    def _poll(self, topics: Mapping[str, Topics], ends: Ends) -> bool:
        for table in self._tables:
            table.start()
        _log.info("polling", tables=len(self._tables))
        self._polling = self.flowed = True
        try:
            while any(table.is_alive() for table in self._tables):
                runtime.sleep(_LOOK_EVERY_S)
                self._look_at_topics(topics)
                self._answer()
                if self._stop.requested or self._is_over():
                    break
        except BaseException:
            ends.failed.set()
            raise
        finally:
            self._polling = False
            self._leave(ends)
        self.ended = self._options.poll_once and not self._stop.requested
        self._line.close()
        if self.ended and (setback := self._setback()) is not None:
            raise setback
        return not any(table.cut_short for table in self._tables)

    def _is_over(self) -> bool:
        """Return whether no table can be polled any longer."""
        if any(table.error for table in self._tables):
            return True
        return all(table.hopeless and table.done for table in self._tables)

    def _setback(self) -> WalstreamError | None:
        """Return why a table did not go on in its last poll."""
        for table in self._tables:
            if (trouble := table.trouble) is not None:
                if not trouble.retryable:
                    return trouble
                return TableHeld(
                    f"table {table.table!r}: {trouble.args[0]}", hint=trouble.hint
                )
            if table.held:
                return TableHeld(
                    f"table {table.table!r}: no new rows were read: too many keys are"
                    " missing below them",
                    hint="poll again later; or raise max_gaps, or lower gap_timeout",
                )
        return None

    def _leave(self, ends: Ends) -> None:
        """End all threads, after what they read; raise what ended one of them."""
        ends.over.set()
        for table in self._tables:
            table.leave()
        deadline = runtime.monotonic() + _LEAVE_S
        for table in self._tables:
            while table.is_alive() and not self._stop.requested:
                table.join(_LOOK_EVERY_S)
                if runtime.monotonic() > deadline:  # Kafka may be away, too
                    ends.failed.set()
            table.join()
        self._answer()
        errors = [table.error for table in self._tables if table.error is not None]
        if not errors and all(table.hopeless for table in self._tables):
            errors = [table.trouble for table in self._tables if table.trouble]
        # what trying again does not cure comes first
        errors.sort(key=lambda error: error.retryable)
        for error in errors:
            for _, answer in self._awaited:
                answer(str(error.args[0]), error.exit_code)
            self._awaited.clear()
            raise error

    def _look_at_topics(self, topics: Mapping[str, Topics]) -> None:
        """See once a minute whether the topics are still what they were."""
        if runtime.monotonic() >= self._refresh_at:
            self._refresh_at = runtime.monotonic() + _REFRESH_S
            self._refreshes = [known.refresh() for known in topics.values()]
            self._senders.sweep()
        for refresh in self._refreshes:
            error = refresh.exception() if refresh.done() else None
            if isinstance(error, WalstreamError) and not error.retryable:
                raise error

    def ask(self, answer: Answer) -> None:
        """Poll every table once more, soon; from any thread."""
        self._asked.append(answer)

    def _answer(self) -> None:
        """Begin what was asked, and tell of what is done."""
        while self._asked:
            answer = self._asked.popleft()
            self._awaited.append(
                ({one: one.poll_now() for one in self._tables}, answer)
            )
        for numbers, answer in list(self._awaited):
            if all(table.done >= number for table, number in numbers.items()):
                self._awaited.remove((numbers, answer))
                setback = self._setback()
                if setback is None:
                    answer("", 0)
                else:
                    answer(str(setback.args[0]), setback.exit_code)

    def report(self) -> PollReport:
        """Return how far the tables are, and whether Kafka is there."""
        told = {table.table: table.report() for table in self._tables}
        return PollReport(
            tables=told or self._kept,
            sinks={
                name: self._report_of(name, one) for name, one in self._topics.items()
            },
        )

    def _report_of(self, sink: str, topics: Topics) -> SinkReport:
        outage = self._ids.outage(sink)
        return SinkReport(
            waiting=topics.away or outage is not None,
            outage=topics.outage or outage,
        )

    def counts(self) -> SourceCounts:
        """Return what this process counted."""
        meters = self._meters.items()
        return SourceCounts(polls={table: meter.report() for table, meter in meters})
