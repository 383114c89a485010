"""Records that say how far a sink is: each op below an LSN is below these offsets.

The ledger says first that all below the LSN is delivered; then brokers are asked where
the partitions end, by the topics' own thread.
"""

from collections.abc import Callable, Collection
from concurrent.futures import Future
from typing import Final

import structlog

from walstream.errors import WalstreamError
from walstream.formats.txinfo import resolved_record
from walstream.kafka.topics import Topics
from walstream.lsn import Lsn
from walstream.op import Kind, ReplicationOp, Table, postgres_time
from walstream.records.producer_record import ProducerRecord
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, SINK
from walstream.telemetry.throttle import Throttle

_TABLE: Final = Table("", "resolved", ())  # no table of any database
_SAY_AGAIN_S: Final = 60.0
_log = structlog.get_logger()

Ends = dict[str, list[int]]


class ResolvedMarks:
    """The marks of one sink: as often as wished, while its position moves."""

    def __init__(  # noqa: PLR0913 - keywords
        self,
        sink: str,
        topic: str,
        every_s: float,
        topics: Topics,
        *,
        aside: Collection[str],
        clock: Callable[[], float] = runtime.monotonic,
    ) -> None:
        """`topic` takes the marks; those `aside` hold no ops."""
        self._sink = sink
        self._topic = topic
        self._every_s = every_s
        self._topics = topics
        self._aside = aside
        self._clock = clock
        self._throttle = Throttle(_SAY_AGAIN_S, clock)
        self._delivered: Lsn = 0
        self._said: Lsn = 0
        self._asked: tuple[Lsn, Future[Ends]] | None = None
        self._next = 0.0

    def resolve(self, lsn: Lsn) -> None:
        """Note that all below `lsn` is delivered."""
        self._delivered = lsn

    def due(self) -> tuple[ProducerRecord, ReplicationOp] | None:
        """Return a mark, once, with an op in the place of its own; None: not now."""
        if self._asked is None:
            now = self._clock()
            if now >= self._next and self._delivered != self._said:
                self._next = now + self._every_s
                self._ask()
            return None
        lsn, ends = self._asked
        if not ends.done():
            return None
        self._asked = None
        try:
            found = ends.result()
        except WalstreamError as error:
            self._warn(error)
            return None
        self._said = lsn
        return self._mark(lsn, found)

    def _ask(self) -> None:
        partitions = {
            name: topic.partitions
            for name, topic in self._topics.known.items()
            if name not in self._aside
        }
        self._asked = self._delivered, self._topics.ends(partitions)

    def _mark(self, lsn: Lsn, ends: Ends) -> tuple[ProducerRecord, ReplicationOp]:
        time = runtime.time()
        key, value = resolved_record(lsn, int(time * 1_000_000), ends)
        op = ReplicationOp(Kind.INSERT, _TABLE, 0, 0, commit_time=postgres_time(time))
        return ProducerRecord(key, value, self._topic), op

    def _warn(self, error: WalstreamError) -> None:
        if self._throttle.is_due(str(error.args[0])):
            _log.warning(
                "resolved is not told: brokers do not say where topics end",
                **{SINK: self._sink, ERROR: str(error.args[0])},
            )
