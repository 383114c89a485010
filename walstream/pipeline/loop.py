"""The one loop: pull, assemble, route, encode, send, deliver, confirm.

One thread serves receiving, producing, feedback and timers; nothing in it waits for a
server. Order per transaction: delivered by every sink, then stored with fsync, then
confirmed to PostgreSQL.
"""

from collections import deque
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, cast

from walstream.lsn import NEVER, Lsn
from walstream.op import Kind, LargeOp, ReplicationOp
from walstream.pipeline.assembler import Assembler, outside
from walstream.pipeline.checkpoint import Checkpointer
from walstream.pipeline.description import Descriptions
from walstream.pipeline.drain import Drain
from walstream.pipeline.fanout import Fanout
from walstream.pipeline.interleave import Interleave
from walstream.pipeline.ledger import Shares
from walstream.pipeline.message_flow import MessageFlow
from walstream.pipeline.pacing import Pace
from walstream.pipeline.pgoutput import (
    Begin,
    Commit,
    LogicalMessage,
    Origin,
    Relation,
    RowMessage,
    Truncate,
    Type,
    decode,
)
from walstream.pipeline.pgoutput import large_value as large_frames
from walstream.pipeline.pgoutput.frame import HEADER_SIZE, WAL_DATA, is_row, keepalive
from walstream.pipeline.pgoutput.large_value import HEAD_SIZE
from walstream.pipeline.ports import Companion, Membership, OldRows, Sink, Source
from walstream.pipeline.rate_limit import RateLimit
from walstream.pipeline.shutdown import Stop, Waker
from walstream.pipeline.stream_end import StreamEnd
from walstream.records import large_op
from walstream.telemetry import runtime
from walstream.telemetry.meter import Meter

_FRAMES_PER_TURN: Final = 500
_U64: Final = Struct("!Q").unpack_from


class Pipeline:
    """Streams one source into its sinks, from a position on."""

    def __init__(
        self,
        source: Source,
        sinks: Sequence[Sink],
        companion: Companion,
        checkpointer: Checkpointer,
        limit: RateLimit | None = None,
    ) -> None:
        """`limit` is what holds the source, if one does."""
        self._source = source
        self._companion = companion
        self._checkpointer = checkpointer
        resume = checkpointer.resume
        self.fanout = Fanout(sinks, resume)  # its figures are for any thread
        self.messages = MessageFlow(self.fanout)
        self._pace = Pace(source, limit)
        self._assembler = Assembler(resume)
        self._descriptions = Descriptions(companion, self._assembler)
        self._transaction: Shares | None = None
        self._frames: list[bytes] = []  # read together
        self._done = 0  # how many of them were processed
        self._ops: deque[ReplicationOp] = deque()  # of a frame that found no room
        self._old_rows = Interleave(self.fanout, None)
        self._beside: Callable[[], OldRows] | None = None  # while nothing is let in
        self._place = resume  # up to where all was read, while no transaction is open
        self._ops_read = 0  # of transactions read to their end
        self._last_commit: Lsn = 0
        self._xid = 0  # of the open transaction
        self._begun: tuple[Lsn, int] = 0, 0  # its commit LSN and time
        self._end = StreamEnd(lambda most: self._old_rows.pending(most))  # noqa: PLW0108 - others come
        self._monotonic = runtime.current().monotonic
        self._perf_counter = runtime.current().perf_counter
        self.turned_at = self._monotonic()  # when the loop last went round

    @property
    def confirmed(self) -> Lsn:
        """Stored position, which is confirmed less `retain`."""
        return self._checkpointer.confirmed

    @property
    def reached(self) -> bool:
        """Return whether it came to the LSN that `run` was to go up to."""
        return self._end.reached

    @property
    def ops_read(self) -> int:
        """Ops read since the start, with those of the open transaction."""
        return self._ops_read + (self._assembler.count if self._transaction else 0)

    def let_in(self, beside: Callable[[], OldRows]) -> None:
        """Let a backfill send rows between transactions; call it before `run`.

        Only while every sink is attached: else it is asked again when all are back.
        """
        self._beside = beside

    def measure(self, meter: Meter) -> None:
        """Set the counters; call it before `run`."""
        self._assembler.measure(meter.tables)
        self.fanout.measure(meter)

    def share(self, membership: Membership, detach_after_s: float) -> None:
        """Let sinks leave and join; call it before `run`."""
        self.fanout.share(membership, detach_after_s)

    def end_at(self, until: Lsn) -> None:
        """Set the LSN at which `run` ends; from any thread."""
        self._end.lsn = until

    def run(self, stop: Stop, until: Lsn = NEVER) -> bool:
        """Stream until `stop`, then drain; return False if the deadline came first.

        A drain reads the open transaction to its end, delivers, stores and confirms.
        `until` ends it too, and then `reached` is set: every transaction with a commit
        LSN below it was delivered, and none from it on was sent, unless rows beside the
        stream were still to be sent.
        """
        if until != NEVER:
            self._end.lsn = until
        self._checkpointer.begin()
        while not (stop.requested or self.reached):
            self._turn(stop.waker)
        self._pace.lift()
        self._old_rows.abandon()
        self.fanout.close()
        drain = Drain(stop, self.fanout)
        while self._transaction is not None and not drain.over:
            self._turn(stop.waker, until_commit=True)
        return self._transaction is None and self._drain(stop, drain)

    def _drain(self, stop: Stop, drain: Drain) -> bool:
        while not drain.over:
            self.turned_at = self._monotonic()
            self.fanout.ready()
            self._checkpointer.hurry()
            self._advance()
            if self.fanout.idle and self.confirmed >= self.fanout.advance():
                return True
            self._companion.tick(paused=True)
            self._source.still_paused()
            self._source.keep_alive()
            self._rest(stop.waker, readable=False)
        return False

    def _turn(self, waker: Waker, *, until_commit: bool = False) -> None:
        self.turned_at = self._monotonic()
        room = self.fanout.ready()
        if not until_commit:
            self._look_at_sinks()
        worked = room and self._work(until_commit=until_commit)
        self._advance()
        self._companion.tick(paused=not room)
        self._source.keep_alive()
        if self._transaction is None:
            self._end.look_again(self._place)
        left = self._done < len(self._frames)
        reading = room and not (left or self._ops or self._old_rows.waiting)
        if not reading:
            self._source.still_paused()
        if worked:
            frames = () if self._old_rows.moved else self._frames
            # rows of before may be let in where the stream is now
            ended = reading and not self._old_rows.open
            if not self._pace.go_on(frames, ended=ended):
                return
            self.fanout.flush()
        self._rest(waker, readable=reading, room=room)

    def _rest(self, waker: Waker, *, readable: bool, room: bool = True) -> None:
        self._pace.rest(
            waker,
            readable=readable,
            in_flight=self.fanout.in_flight,
            due_s=self._checkpointer.due_s(self.fanout.advance()),
            room=room,
            answer_s=self.fanout.answer_s(self.turned_at),
        )

    def _look_at_sinks(self) -> None:
        """Let sinks leave and join, and rows in while none is detached."""
        ended = None if self._transaction or self._old_rows.waiting else self._place
        self.fanout.look(ended, self._ops_read)
        if self._beside is not None and self.fanout.whole != self._old_rows.open:
            self._old_rows.abandon()
            beside = self._beside() if self.fanout.whole else None
            self._old_rows = Interleave(self.fanout, beside, self._checkpointer.admits)

    def _work(self, *, until_commit: bool) -> bool:
        """Process arrived frames while sinks have room; return whether any arrived."""
        if not self._flush_ops():
            return False
        inset = self._old_rows
        inset.begin_turn(closed=until_commit)
        if self._transaction is None and not inset.let_in(self._place):
            return inset.moved
        worked = inset.moved
        self.messages.room = True
        if self._done >= len(self._frames):
            self._done = 0
            self._frames = list(self._source.read(_FRAMES_PER_TURN))
        frames = self._frames
        while self._done < len(frames):
            frame = frames[self._done]
            if frame[0] == WAL_DATA and is_row(frame[HEADER_SIZE]):
                self._done += 1
                if len(frame) == HEAD_SIZE:
                    op = self._large_row(frame)
                else:
                    row = cast("RowMessage", decode(frame, HEADER_SIZE))
                    op = self._assembler.row(row, _U64(frame, 1)[0])
                if not self._send(op):
                    return True
            elif self._process(frame):
                self._done += 1
                if (
                    not self.messages.room
                    or (self._ops and not self._flush_ops())
                    or (
                        self._transaction is None
                        and (until_commit or not inset.let_in(self._place))
                    )
                ):
                    return True
            else:
                return worked
            worked = True
        return worked

    def _large_row(self, frame: bytes) -> ReplicationOp:
        row = large_frames.read(frame)
        return large_op.made(self._assembler.row(row, _U64(frame, 1)[0]))

    def _process(self, frame: bytes) -> bool:
        """Process a CopyData frame that is not a row; False: pass it in again."""
        if frame[0] != WAL_DATA:
            self._keepalive(frame)
            return True
        message = decode(frame, HEADER_SIZE)
        match message:
            case Begin():
                return self._begin(message)
            case Commit():
                self._commit(message)
            case Relation():
                return self._descriptions.describe(message, self._xid)
            case Truncate():
                self._ops.extend(self._assembler.truncate(message, _U64(frame, 1)[0]))
            case Type():
                self._assembler.name_type(message)
            case Origin():
                self.fanout.come_from(message.name, message.commit_lsn)
            case LogicalMessage():
                return self._message(message)
            case _:
                pass  # a row, which does not come here
        return True

    def _begin(self, message: Begin) -> bool:
        """Open a transaction; False: pass it in again."""
        lsn = message.final_lsn
        if self._end.look(lsn) or not self._checkpointer.admits(lsn):
            return False
        self._assembler.begin(message)
        self._begun = lsn, message.commit_time
        self._transaction = self.fanout.begin(lsn, message.commit_time)
        self._checkpointer.note(lsn, message.commit_time)
        self._xid = message.xid
        return True

    def _message(self, message: LogicalMessage) -> bool:
        """Send a logical message; False: pass it in again."""
        if message.transactional:
            if self._transaction is None:
                raise outside("a transactional message")
            self.messages.within(message, *self._begun, self._xid)
            return True
        if self._end.look(message.lsn) or not self._checkpointer.admits(message.lsn):
            return False
        self._last_commit = self._place = self.messages.alone(message)
        return True

    def _commit(self, message: Commit) -> None:
        """Close the open transaction."""
        if self._transaction is None:
            raise outside("a commit")
        count = self._assembler.count
        self._ops_read += count
        table = self._assembler.meter
        if count:
            table.seconds.observe(self._perf_counter() - self.fanout.began)
        self.fanout.commit(message.end_lsn, count, table)
        self._last_commit = self._place = message.end_lsn
        self._transaction = None

    def _keepalive(self, frame: bytes) -> None:
        wal_end, _, reply = keepalive(frame)
        if self._transaction is None:
            self.fanout.keepalive(wal_end)
            self._place = max(self._place, wal_end)
            self._end.look(wal_end)
        if reply:
            self._source.keep_alive(now=True)

    def _send(self, op: ReplicationOp) -> bool:
        """Send an op to every sink; return False if the next has to wait."""
        if self._transaction is None:
            raise outside(f"a row of {op.table.full_name!r}")
        if (
            op.table.facts or (op.absent and (op.key_changed or op.kind is Kind.INSERT))
        ) and not self._descriptions.complete(op):
            self._ops.append(op)
            return False
        if type(op) is LargeOp:
            return self._send_large(op)
        if self._old_rows.note is not None:
            self._old_rows.note(op)
        return self.fanout.send(op)

    def _send_large(self, op: LargeOp) -> bool:
        if self._old_rows.note is not None:
            # where values are missing, the others may be wanted
            self._old_rows.note(large_op.plain(op) if op.absent else op)
        return self.fanout.send_large(op)

    def _flush_ops(self) -> bool:
        """Send ops that had to wait; return False if some still have to."""
        while self._ops:
            op = self._ops.popleft()
            waiting = len(self._ops)
            if not self._send(op):
                if len(self._ops) > waiting:
                    self._ops.rotate(1)  # it waits on, in front
                return False
        return True

    def _advance(self) -> None:
        """Store how far everything is delivered; confirm what is stored."""
        self._checkpointer.advance(self.fanout.advance(), self._last_commit)
