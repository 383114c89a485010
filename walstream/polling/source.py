"""A sql source, as its worker runs it: a thread for each table, until one fails.

A database, Kafka or Spark that is away ends the session, and the worker tries again; a
row that a topic refuses keeps only its own table waiting.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import structlog

from walstream.config import Config, SqlSource
from walstream.errors import ConfigError, WalstreamError
from walstream.kafka.topics import Topics
from walstream.meter import PollMeter
from walstream.options import Options
from walstream.polling.look import Place
from walstream.polling.order import PollOrder
from walstream.polling.poller import Poller, Rules
from walstream.polling.progress import Progress, bounds_of, progress_of
from walstream.polling.runner import Line, Runner
from walstream.polling.table import TableHeld, TableThread
from walstream.polling.topics import topics_of
from walstream.polling.visit import wish_of
from walstream.ports import Positions
from walstream.routers import Routers
from walstream.sinks import SinkSet
from walstream.spark import session
from walstream.spark.leash import await_orphans
from walstream.spark.poll import Range
from walstream.sql.engine import Database
from walstream.sql.marks import Marks
from walstream.sql.shape import Shape
from walstream.sql.table import look
from walstream.stop import Stop

_LOOK_EVERY_S: Final = 0.05
_REFRESH_S: Final = 60.0
_log = structlog.get_logger()

Answer = Callable[[str, int], None]
"""Hears "" when what was asked is done; or why it is not, and its exit code."""


class PolledSource:
    """One source's tables; `run` polls them until a stop, or an error."""

    def __init__(
        self,
        config: Config,
        name: str,
        positions: Positions,
        options: Options,
        stop: Stop,
    ) -> None:
        source = config.sources[name]
        if not isinstance(source, SqlSource):
            raise ConfigError(f"source {name!r} is no sql source")
        self._config = config
        self._name = name
        self._source = source
        self._database = Database(source.url)
        self._positions = positions
        self._options = options
        self._stop = stop
        self._sinks = SinkSet(config, name, positions, options, {})
        self._routers = Routers(config, name)
        self._lock = Path(config.state) / name / "spark.lock"
        self._line = Line(options.driver)
        self._topics: Mapping[str, Topics] = {}  # by sink
        self._tables: list[TableThread] = []
        self._kept: dict[str, dict[str, Any]] = {}  # told, before there are any
        self._meters = {table: PollMeter() for table in source.tables}
        self._asked: deque[Answer] = deque()
        self._awaited: list[tuple[dict[TableThread, int], Answer]] = []
        self._refresh_at = 0.0
        self._refreshes: list[Future[None]] = []
        self.ended = False  # there is nothing left to do, now or later
        self._polling = False
        self._spark_found = False

    @property
    def phase(self) -> str:
        return "polling" if self._polling else ""

    def say_drained(self, *, drained: bool) -> None:
        """Log how a stop went."""
        if drained:
            _log.info("drained")
        else:
            _log.warning("stopped before all was delivered: it will come again")

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
            with self._database.session() as connection:
                shapes = {
                    name: look(connection, wish_of(name, table))
                    for name, table in self._source.tables.items()
                }
            topics = self._find_topics(stack, named.values())
            # what they still send would come amid what is sent again
            if topics is None or not await_orphans(self._lock, self._stop):
                return True
            failed = threading.Event()
            self._tables = [
                self._table(shape, named[name], topics, failed)
                for name, shape in shapes.items()
            ]
            return self._poll(topics, failed)

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
        shape: Shape,
        named: Mapping[str, str],
        topics: Mapping[str, Topics],
        failed: threading.Event,
    ) -> TableThread:
        """Compose what polls one table; `named` are its topics, by sink."""
        name = shape.name
        rules = self._source.tables[name]
        targets = {sink: topics[sink].known[topic] for sink, topic in named.items()}

        def order(parts: Sequence[Range]) -> PollOrder:
            return PollOrder(
                self._name,
                name,
                shape,
                targets,
                parts,
                str(self._lock),
                rules.parallelism,
            )

        runner = Runner(self._line, order, self._stop, failed)
        marks = Marks(shape)
        poller = Poller(
            Rules(
                name,
                rules.start if rules.start_after is None else rules.start_after,
                rules.limit,
                rules.parallelism,
            ),
            Progress(self._positions, name, bounds_of(rules)),
            Place(self._database, shape, marks).connect,
            runner,
        )
        interval_s = None if self._options.poll_once else self._source.poll_interval
        made = TableThread(name, poller, runner, interval_s, lambda: marks.lacking)
        made.measure(self._meters[name])
        return made

    def _poll(self, topics: Mapping[str, Topics], failed: threading.Event) -> bool:
        for table in self._tables:
            table.start()
        _log.info("polling", tables=len(self._tables))
        self._polling = True
        try:
            while any(table.is_alive() for table in self._tables):
                time.sleep(_LOOK_EVERY_S)
                self._look_at_topics(topics)
                self._answer()
                if self._stop.requested or any(table.error for table in self._tables):
                    break
        finally:
            self._polling = False
            self._leave(failed)
        self.ended = self._options.poll_once and not self._stop.requested
        self._line.close()
        if self.ended and (setback := self._setback()) is not None:
            raise setback
        return not any(table.cut_short for table in self._tables)

    def _setback(self) -> WalstreamError | None:
        """Tell why a table did not go on in its last poll."""
        for table in self._tables:
            if table.refused is not None:
                return table.refused
            if table.held:
                return TableHeld(
                    f"table {table.table!r}: no new rows were read: too many keys are"
                    " missing below them",
                    hint="poll again later; or raise max_gaps, or lower gap_timeout",
                )
        return None

    def _leave(self, failed: threading.Event) -> None:
        """End all threads; raise what ended one of them."""
        if not self._stop.requested:
            failed.set()
        for table in self._tables:
            table.leave()
        for table in self._tables:
            table.join()
        self._answer()
        errors = [table.error for table in self._tables if table.error is not None]
        # what trying again does not cure comes first
        errors.sort(key=lambda error: error.retryable)
        for error in errors:
            for _, answer in self._awaited:
                answer(str(error.args[0]), error.exit_code)
            self._awaited.clear()
            raise error

    def _look_at_topics(self, topics: Mapping[str, Topics]) -> None:
        """See once a minute whether the topics are still what they were."""
        if time.monotonic() >= self._refresh_at:
            self._refresh_at = time.monotonic() + _REFRESH_S
            self._refreshes = [known.refresh() for known in topics.values()]
        for refresh in self._refreshes:
            error = refresh.exception() if refresh.done() else None
            if isinstance(error, WalstreamError) and not error.retryable:
                raise error

    def ask(self, answer: Answer) -> None:
        """Have every table polled once more, soon; from any thread."""
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

    def report(self) -> dict[str, Any]:
        """Tell how far the tables are, and whether Kafka is there."""
        told = {table.table: table.report() for table in self._tables} or self._kept
        polls = {table: meter.report() for table, meter in self._meters.items()}
        return {
            "tables": told,
            "metrics": {"polls": polls},
            "sinks": {
                name: {"waiting": one.away} for name, one in self._topics.items()
            },
        }
