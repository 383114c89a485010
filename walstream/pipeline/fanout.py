"""The sinks of one stream, each with a ledger of its own.

Every op goes to every sink, and the slowest sink decides the position. A sink that
fails for good or lags too long is detached while others stay; it holds the position
until its own worker continues from there. A sink may join at the end of a transaction.
"""

from collections.abc import Callable, Sequence
from typing import Final

from walstream.errors import WalstreamError
from walstream.lsn import Lsn
from walstream.op import LargeOp, MessageOp, ReplicationOp, Table
from walstream.pipeline.answer_time import AnswerTime
from walstream.pipeline.attached_sink import AttachedSink
from walstream.pipeline.lag import LagPolicy
from walstream.pipeline.ledger import Shares
from walstream.pipeline.ports import Membership, Sink, flush, send_message
from walstream.pipeline.reattach import JoiningSink
from walstream.records.large_op import plain, takes_large
from walstream.telemetry import runtime
from walstream.telemetry.meter import Meter, TableMeter

_LOOK_EVERY_S: Final = 0.5


class Fanout:
    """All sinks of one stream; called by its loop alone unless marked."""

    def __init__(
        self,
        sinks: Sequence[Sink],
        resume: Lsn,
        clock: Callable[[], float] = runtime.monotonic,
    ) -> None:
        self._meter = Meter()
        self._answers = AnswerTime()
        self._lanes = [self._attached(sink, resume) for sink in sinks]
        self._leaving: dict[Sink, Lsn] = {}  # from where somebody else is to go on
        self._membership: Membership | None = None
        self._lag = LagPolicy[AttachedSink](0.0)
        self._clock = clock
        self._perf_counter = runtime.current().perf_counter
        self._next_look = 0.0
        self.began = 0.0  # the last transaction, perf_counter

    def _attached(self, sink: Sink, resume: Lsn) -> AttachedSink:
        return AttachedSink(sink, resume, self._meter.sink(sink.name), self._answers)

    def measure(self, meter: Meter) -> None:
        """Set the counters of each sink; call it before anything is sent."""
        self._meter = meter
        for lane in self._lanes:
            lane.meter = meter.sink(lane.sink.name)

    def share(self, membership: Membership, detach_after_s: float) -> None:
        """Let sinks leave and join by `membership`."""
        self._membership = membership
        self._lag = LagPolicy[AttachedSink](detach_after_s)

    @property
    def sinks(self) -> list[Sink]:
        """Attached sinks; from any thread."""
        return [lane.sink for lane in self._lanes]

    @property
    def whole(self) -> bool:
        """Return whether every sink of the source is attached, from one place on."""
        joining = any(isinstance(lane.sink, JoiningSink) for lane in self._lanes)
        return self._membership is None or (self._membership.whole and not joining)

    # what the ledgers say

    @property
    def undelivered(self) -> int:
        return sum(lane.ledger.undelivered for lane in self._lanes)

    @property
    def delivered_ops(self) -> int:
        """Ops in transactions that every sink has fully delivered; from any thread."""
        return min(lane.ledger.delivered_ops for lane in self._lanes)

    @property
    def oldest_commit_time(self) -> int | None:
        """Commit time of the oldest transaction in flight, in us; from any thread."""
        times = (lane.ledger.oldest_commit_time for lane in tuple(self._lanes))
        return min((at for at in times if at is not None), default=None)

    @property
    def idle(self) -> bool:
        """Whether nothing is in flight, no transaction open; valid after `advance`."""
        return all(lane.ledger.idle for lane in self._lanes)

    def answer_s(self, now: float) -> float:
        """Return how soon Kafka answers of late; 0.0 where nothing was delivered."""
        return self._answers.least_s(now)

    @property
    def in_flight(self) -> int:
        return sum(lane.sink.in_flight for lane in self._lanes)

    def begin(self, lsn: Lsn, commit_time: int = 0) -> Shares:
        """Open the next transaction in every sink."""
        self.began = began = self._perf_counter()
        for lane in self._lanes:
            lane.transaction = transaction = lane.ledger.begin(lsn, commit_time)
            transaction.began = began
        return Shares([lane.transaction for lane in self._lanes if lane.transaction])

    def come_from(self, name: str, lsn: Lsn) -> None:
        """Note of the open transaction that it was replicated from another server.

        `name` is that of the replication origin, `lsn` that of the commit there.
        """
        for lane in self._lanes:
            if lane.transaction is not None:
                lane.transaction.origin = name, lsn

    def commit(
        self, end_lsn: Lsn, ops: int = 0, table: TableMeter | None = None
    ) -> None:
        """Close the open transaction, whose last row is of `table`."""
        for lane in self._lanes:
            if lane.transaction is not None:
                lane.transaction.table = table
            try:
                lane.ledger.commit(end_lsn, ops)  # a sink may send a last record
            except WalstreamError as error:
                self._fail(lane, error)
            lane.transaction = None

    def keepalive(self, wal_end: Lsn) -> None:
        """Note that the server has nothing for this stream below `wal_end`."""
        for lane in self._lanes:
            lane.ledger.keepalive(wal_end)

    def advance(self) -> Lsn:
        """Return the position: all below is delivered, or left to another worker."""
        resume = min([lane.advance() for lane in self._lanes])
        for held in self._leaving.values():
            resume = min(resume, held)
        return resume

    @property
    def proven(self) -> bool:
        """Return whether the position is behind all that was sent or left out."""
        return all(lane.advance() == lane.ledger.advance() for lane in self._lanes)

    @property
    def leaving(self) -> bool:
        """Return whether the position waits for a sink that is being detached.

        The others may have been sent more.
        """
        return bool(self._leaving)

    # what the sinks do

    def ready(self) -> bool:
        """Return whether every sink has room; this serves its delivery reports."""
        room = True
        for lane in self._lanes:
            lane.meter.turn()
            try:
                has_room = lane.sink.ready()
            except WalstreamError as error:
                self._fail(lane, error)
                continue
            if has_room:
                lane.roomy = True
            else:
                lane.full = True
                room = False
            if isinstance(lane.sink, JoiningSink) and lane.sink.joined:
                lane.sink = lane.sink.sink
        return room

    def flush(self) -> None:
        """Send what waits for others in any sink: none came."""
        for lane in self._lanes:
            lane.meter.turn()  # what is delivered meanwhile is so by now
            try:
                flush(lane.sink)
            except WalstreamError as error:
                self._fail(lane, error)

    def knows(self, table: Table) -> bool:
        """Return whether every sink knows the topic of a table."""
        # a list: each sink is asked, whatever another says
        return all([lane.sink.knows(table) for lane in self._lanes])  # noqa: C419

    def send(self, op: ReplicationOp) -> bool:
        """Send an op to every sink; False: the next has to wait."""
        room = True
        for lane in self._lanes:
            try:
                # there while a transaction is open, which is not asked for each row
                if not lane.sink.send(op, lane.transaction):  # type: ignore[arg-type]
                    room = False
            except WalstreamError as error:
                self._fail(lane, error)
        return room

    def send_large(self, op: LargeOp) -> bool:
        """Send an op with placeholders; other sinks get the texts."""
        room = True
        for lane in self._lanes:
            given = op if takes_large(lane.sink) else plain(op)
            try:
                if not lane.sink.send(given, lane.transaction):  # type: ignore[arg-type]
                    room = False
            except WalstreamError as error:
                self._fail(lane, error)
        return room

    def send_message(self, message: MessageOp) -> bool:
        """Send a logical message to the sinks that take such."""
        room = True
        for lane in self._lanes:
            if lane.transaction is None:
                raise WalstreamError("a message outside of a transaction: a defect")
            try:
                if not send_message(lane.sink, message, lane.transaction):
                    room = False
            except WalstreamError as error:
                self._fail(lane, error)
        return room

    def put(self, op: ReplicationOp) -> bool:
        """Send a row of a backfill; a sink that refuses it stays."""
        room = True
        for lane in self._lanes:
            if not lane.sink.send(op, lane.transaction):  # type: ignore[arg-type]
                room = False
        return room

    # who leaves, who comes

    def look(self, place: Lsn | None, ops: int) -> None:
        """Drop detached sinks, detach those that lag, attach those that return.

        `place` is the end of a transaction, None while one is open; `ops` is the count
        of ops read.
        """
        membership = self._membership
        if membership is None:
            return
        for left in [one for one in self._leaving if membership.gone(one)]:
            del self._leaving[left]
        now = self._clock()
        if now < self._next_look:
            return
        self._next_look = now + _LOOK_EVERY_S
        settled = _settled(self._lanes)
        late = self._lag.look(now, {lane: lane.sight() for lane in settled})
        for lane, late_s in late.items():
            if len(_settled(self._lanes)) > 1:
                self._leave(lane, f"it is {late_s:.0f} s behind the others")
        for lane in self._lanes:
            if place is not None and isinstance(lane.sink, JoiningSink):
                lane.sink.reach(place)
        if place is not None and (sink := membership.arriving(place)) is not None:
            lane = self._attached(sink, place)
            lane.ledger.delivered_ops = ops
            self._lanes = [*self._lanes, lane]

    def _fail(self, lane: AttachedSink, error: WalstreamError) -> None:
        """Detach a failed sink if possible; this changes the list of sinks."""
        lane.meter.errors += 1
        others = [one for one in self._lanes if one is not lane]
        if isinstance(lane.sink, JoiningSink) and lane.sink.give_up(error):
            self._lanes = others
            return
        if self._membership is None or error.retryable or not _settled(others):
            raise error
        self._leave(lane, str(error.args[0]))

    def _leave(self, lane: AttachedSink, why: str) -> None:
        if self._membership is None:
            return
        self._lanes = [one for one in self._lanes if one is not lane]
        resume = lane.advance()
        self._leaving[lane.sink] = resume
        self._membership.release(lane.sink, resume, why)

    def close(self) -> None:
        """End the membership: a sink that is about to return stays detached."""
        self._lanes = [
            lane
            for lane in self._lanes
            if not (isinstance(lane.sink, JoiningSink) and lane.sink.give_up(None))
        ]
        self._membership = None


def _settled(lanes: Sequence[AttachedSink]) -> list[AttachedSink]:
    """Return the sinks that no other worker sends to, now or later."""
    return [lane for lane in lanes if not isinstance(lane.sink, JoiningSink)]
