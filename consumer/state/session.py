"""One partition's state as far as this member knows it, and the session of its turn.

The row is read when the partition is assigned, and again whenever it may be another
one: after a lost connection, and after another member moved it. Each turn may have
another of the consumer's sessions: between turns only the row counts, by
compare-and-set.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, NoReturn, TypeVar

import psycopg

from consumer.group.assigned_partition import AssignedPartition, Pause
from consumer.group.settings import FirstOffset
from consumer.handler import Transaction
from consumer.state.batch import Batch, BatchOutcome, Locked, Moved
from consumer.state.connection import passes
from consumer.state.connection_pool import Connections
from consumer.state.partition_state import UNREAD, KnownState, StateRow
from consumer.state.position import NOTHING, SnapshotChunk
from consumer.state.source import AcceptSource, accepts, foreign_source
from consumer.state.topic_guard import TopicGuard
from walstream.errors import Transient
from walstream.pipeline.backoff import Backoff
from walstream.telemetry import runtime

T = TypeVar("T")

_LOCK_POLL_S: Final = 0.05
_PATIENCE_S: Final = 1.0  # before the holders of the lock are looked at
_LOOKS_BETWEEN_WARNINGS: Final = 30
_FLUSH_S: Final = 5.0
_REST_S: Final = 1.0
_COUNTED_S: Final = 5.0
_CHUNKS_KNOWN: Final = 10_000
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class SessionOptions:
    group: str
    connections: Connections
    guard: TopicGuard
    accept_source: AcceptSource
    frozen_s: float  # after which an idle holder of the lock is taken for frozen
    begin: FirstOffset


class PartitionSession:
    """Used in its lane's turns alone. What has to wait raises Pause, out of any
    transaction, and is done again from its beginning.
    """  # noqa: D205 - a sentence

    def __init__(
        self, lane: AssignedPartition, batch: Batch, options: SessionOptions
    ) -> None:
        self._lane = lane
        self._batch = batch
        self._options = options
        self._tx: Transaction | None = None
        self.known = KnownState(UNREAD, UNREAD, {})
        self._stale = False  # the row may be another one
        self._partitions = 0, 0.0  # how many the topic has, and when it was asked
        self._trouble = Backoff(first_s=0.05, longest_s=5.0)
        self._locked_since: float | None = None
        self._made_at = runtime.monotonic()
        options.guard.expect(lane.place)
        self._looks = 0  # at the holders of the lock, since it is not ours
        self._flushed_at = runtime.monotonic()

    @property
    def tx(self) -> Transaction:
        """A session for this turn, another one where it was lost."""
        if self._tx is not None and self._tx.closed:
            self.give_back()
        if self._tx is None:
            self._tx = self._options.connections.take()
        return self._tx

    def give_back(self) -> None:
        """End the turn."""
        tx, self._tx = self._tx, None
        if tx is not None:
            self._options.connections.give_back(tx)

    def begin(self) -> None:
        """Read the row, see that the topic is the same, and seek."""
        self._know(self._patiently(self._read))
        self.check_topic(since=self._made_at)
        self._seek()

    def end(self) -> None:
        with suppress(psycopg.Error, Locked, Moved):
            self._flush()

    @property
    def holds(self) -> bool:
        """Whether anything was seen that is not yet noted."""
        return self.known.now != self.known.row

    def check_topic(
        self, offset: int | None = None, since: float | None = None
    ) -> None:
        """Raise TopicReplaced when the topic cannot be read on; Kafka may be away.

        `offset` is the first one that is asked for, else what comes next; `since` is
        when the question came up, else now.
        """
        asked_at = runtime.monotonic() if since is None else since
        now = self.known.now
        wanted = now.next_offset if offset is None else offset
        topic_id = self._patiently(
            lambda: self._options.guard.check(
                self._lane.place, wanted, now.topic_id, asked_at
            )
        )
        self._see(replace(now, topic_id=topic_id))

    def topic_partitions(self) -> int:
        """Return how many partitions the topic has, as of the last seconds."""
        now = runtime.monotonic()
        count, asked_at = self._partitions
        if not count or now - asked_at > _COUNTED_S:
            topic = self._lane.place.topic
            count = self._patiently(lambda: self._options.guard.partitions(topic))
            self._partitions = count, now
        return count

    def index_of(self, chunk: SnapshotChunk) -> int:
        """Return the last row of a snapshot's chunk that took effect."""
        chunks = self.known.chunks
        if chunk not in chunks:
            chunks[chunk] = self._patiently(
                lambda: self._batch.state.read_chunk(self.tx, chunk)
            )
        return chunks[chunk]

    def committed(self, outcome: BatchOutcome) -> None:
        """Take over what is true now."""
        chunks = self.known.chunks if len(self.known.chunks) < _CHUNKS_KNOWN else {}
        self._know(outcome.kept, chunks | outcome.chunks if outcome.chunks else chunks)
        self._lane.handled = outcome.kept.next_offset
        self._trouble.reset()
        self._unlocked()

    def skipped(self, next_offset: int) -> None:
        """Pass over records that change nothing; not worth a transaction each.

        Where the client went back, what stands before `next_offset` has taken effect:
        of an op without a name of its own the offset alone tells that.
        """
        next_offset = max(next_offset, self.known.now.next_offset or 0)
        self._see(replace(self.known.now, next_offset=next_offset))
        self._lane.handled = next_offset
        if runtime.monotonic() - self._flushed_at > _FLUSH_S:
            self._note()

    def rest(self) -> float | None:
        """Note how far was seen, sometimes; tell when there is more to note."""
        if not self.holds:
            return None
        left = self._flushed_at + _REST_S - runtime.monotonic()
        if left > 0:
            return left
        self._note()
        return _REST_S

    def _note(self) -> None:
        self._flushed_at = runtime.monotonic()
        # whoever moved the row is met at the next op
        with suppress(psycopg.Error, Locked, Moved):
            self._flush()

    def doubt(self) -> None:
        """Read the row again before the next op."""
        self._stale = True

    def sure(self, offset: int) -> bool:
        """Be sure of the row before handling `offset`; False: it sought."""
        return not self._stale or not self._reload(offset)

    def _reload(self, offset: int) -> bool:
        """Read the row again, before handling `offset`; tell whether it sought."""
        before = self.known.row
        row = self._patiently(self._read)
        self._stale = False
        if row == before:
            self.known = replace(self.known, chunks={})
            return False
        self._know(row)
        _log.warning(
            "the state of %s was changed: it was %s in memory, and is %s; continuing"
            " there",
            self._lane.place,
            before,
            row,
        )
        if row.next_offset == before.next_offset:
            return False
        if row.next_offset is not None and row.next_offset >= offset:
            return False  # what lies between is skipped by its position
        self._seek()
        return True

    def recover(self, error: BaseException) -> NoReturn:
        """Wait; then connect again where needed, and read the row."""
        self._log_trouble(error)
        read_only = isinstance(error, psycopg.errors.ReadOnlySqlTransaction)
        if read_only and self._tx is not None:
            self._tx.close()  # another host of the dsn may be the primary now
        self.doubt()
        raise Pause(self._trouble.next())

    def meet_source(self, named: str, offset: int) -> None:
        """Take a source as ours; raise ForeignSource when it is another's."""
        kept = self.known.now.source
        if kept is None:
            self._see(replace(self.known.now, source=named))
            return
        place = self._lane.place
        if not accepts(self._options.accept_source, kept, named):
            raise foreign_source(self._options.group, place, offset, kept, named)
        try:
            self._patiently(lambda: self._change_source(named))
        except Moved:
            self.doubt()
        else:
            _log.warning("%s: continuing with source %s after %s", place, named, kept)

    def wait_for_lock(self) -> NoReturn:
        """Wait a moment; end a holder that is frozen."""
        now = runtime.monotonic()
        self._locked_since = self._locked_since or now
        if now - self._locked_since > _PATIENCE_S:
            self._locked_since = now
            self._looks += 1
            with suppress(psycopg.Error):
                self._look_at_holders()
        raise Pause(_LOCK_POLL_S)

    def _look_at_holders(self) -> None:
        state, frozen_s = self._batch.state, self._options.frozen_s
        holders = state.end_frozen_holders(self.tx, frozen_s)
        for pid in (pid for pid, ended in holders.items() if ended):
            _log.warning(
                "ended the session %s: it kept %s locked and did nothing for %s s",
                pid,
                self._lane.place,
                frozen_s,
            )
        if self._looks % _LOOKS_BETWEEN_WARNINGS == 0:
            _log.warning(
                "%s is locked by the sessions %s", self._lane.place, [*holders]
            )

    def _read(self) -> StateRow:
        """Read the row, of a topic that is begun."""
        row = self._read_row()
        if row.next_offset is not None or self._options.begin is FirstOffset.NOWHERE:
            return row  # the client reports it
        latest = self._options.begin is FirstOffset.LATEST
        # before the row is written: whoever began the topic meanwhile has done so
        bounds, topic_id = self._options.guard.begins(
            self._lane.place.topic, latest=latest
        )
        self._batch.state.begin(self.tx, bounds, topic_id)
        return self._read_row()

    def _read_row(self) -> StateRow:
        tx = self.tx
        with tx.transaction():
            self._batch.lock(tx)
            return self._batch.read(tx)

    def _change_source(self, named: str) -> None:
        """Begin from scratch with another source: none of its ops took effect."""
        tx = self.tx
        after = replace(self.known.now, position=NOTHING, source=named)
        with tx.transaction():
            xid = self._batch.lock(tx)
            self._batch.forget(tx)
            self._batch.move(tx, xid, self.known.row, after)
        self._know(after)

    def _flush(self) -> None:
        known = self.known
        if known.now == known.row:
            return
        tx = self.tx
        with tx.transaction():
            xid = self._batch.lock(tx)
            self._batch.move(tx, xid, known.row, known.now)
        self._know(known.now, known.chunks)

    def _know(
        self, row: StateRow, chunks: dict[SnapshotChunk, int] | None = None
    ) -> None:
        self.known = KnownState(row, row, chunks or {})

    def _see(self, now: StateRow) -> None:
        self.known = replace(self.known, now=now)

    def _seek(self) -> None:
        next_offset = self.known.now.next_offset
        if next_offset is not None:
            self._lane.seek(next_offset)

    def _patiently(self, action: Callable[[], T]) -> T:
        """Do it; raise Pause while the database or Kafka is away."""
        try:
            result = action()
        except Locked:
            self.wait_for_lock()
        except (psycopg.Error, Transient) as error:
            if not self.passes(error):
                raise
            self._log_trouble(error)
            raise Pause(self._trouble.next()) from None
        # `_trouble` goes on: a reload succeeds between two failing tries
        self._unlocked()
        return result

    def ask(self, question: Callable[[Transaction], T]) -> T:
        """Return its answer; raise Pause while the database or Kafka is away."""
        return self._patiently(lambda: question(self.tx))

    def passes(self, error: BaseException) -> bool:
        """Return whether the same, done again, may succeed."""
        if isinstance(error, Transient) or self._tx is None:
            return True
        if isinstance(error, psycopg.OperationalError) and self._tx.closed:
            return True  # this is what connecting anew said
        return passes(error, self._tx)

    def _unlocked(self) -> None:
        self._locked_since, self._looks = None, 0

    def _log_trouble(self, error: BaseException) -> None:
        # the words of a server may hold a row's value; ours do not
        if isinstance(error, Transient):
            said = str(error)
        else:
            said = (error.sqlstate if isinstance(error, psycopg.Error) else "") or ""
            said = f"{type(error).__name__} ({said or 'no code'})"
        _log.warning("%s: %s, trying again", self._lane.place, said)
