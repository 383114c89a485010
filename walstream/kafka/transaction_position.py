"""The position that a sink writes in each of its Kafka transactions.

It says up to which op the committed transactions have all that the stream sent. So a
stream that begins at an older position leaves out just that.

As with `last_record`, nothing is taken for granted: a server that was set back writes
other transactions under the same LSNs. The position stays before what was left out,
until the stream met the very transaction, with its commit time.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Final

import orjson

from walstream.errors import Restart
from walstream.kafka.replay_mark import ReplayMark
from walstream.kafka.start_report import StartReport, no_position, of_position
from walstream.kafka.transaction_plan import TransactionPlan
from walstream.lsn import NEVER, Lsn, show
from walstream.op import MessageOp, ReplicationOp
from walstream.pipeline.ledger import MESSAGES_ALONE, Counted, Transaction
from walstream.telemetry.meter import SinkMeter

LAST_SEQ_ID: Final = (1 << 63) - 1
"""Stands behind each op of a transaction: the name of what tells its end."""


@dataclass(frozen=True, slots=True)
class TransactionPosition:
    """The last transaction that a sink's Kafka transactions have, or a part of it."""

    lsn: Lsn  # its commit's
    commit_time: int  # microseconds since 2000-01-01 UTC
    origin: str  # system_identifier/database/epoch
    seq_id: int = LAST_SEQ_ID  # of the last op that they have of it
    replay: str = ""

    @property
    def is_whole(self) -> bool:
        return self.seq_id == LAST_SEQ_ID

    def encode(self) -> bytes:
        """Return the record's value."""
        fields = asdict(self)
        if self.is_whole:
            del fields["seq_id"]
        return orjson.dumps(fields)


def decode_position(value: bytes) -> TransactionPosition | None:
    """Return what a record tells; None: nothing that walstream wrote."""
    try:
        found = orjson.loads(value)
        position = TransactionPosition(
            found["lsn"],
            found["commit_time"],
            found["origin"],
            found.get("seq_id", LAST_SEQ_ID),
            found.get("replay", ""),
        )
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
    numbers = (position.lsn, position.commit_time, position.seq_id)
    texts = (position.origin, position.replay)
    fits = all(type(one) is int for one in numbers)
    return position if fits and all(type(one) is str for one in texts) else None


def is_before(found: TransactionPosition, replay: ReplayMark | None) -> str:
    """Return why a position is to be sent again from; "" where it counts."""
    if replay is not None and found.replay != replay.token:
        return "what it covers is sent again: it is from before a replay"
    return ""


def strange(found: TransactionPosition, origin: str, flush: Lsn) -> str:
    """Return why a position is not of a server's history; "" where it may be.

    `origin` is what its records are of, `flush` the end of its WAL. A later epoch than
    that is of the same history: a state folder that is lost, or an older copy, does not
    know of a `positions reset` since.
    """
    server, _, epoch = origin.rpartition("/")
    its_server, _, its_epoch = found.origin.rpartition("/")
    if its_server != server or _number(its_epoch) < _number(epoch):
        return f"it is of another history, {found.origin}"
    if found.lsn >= flush:
        return f"it is at {show(found.lsn)}, and the server's WAL ends before that"
    return ""


def _number(epoch: str) -> int:
    return int(epoch) if epoch.isdecimal() else -1


@dataclass(frozen=True, slots=True)
class HistoryPlace:
    """The point of a server's history at which a stream begins."""

    origin: str  # system_identifier/database/epoch
    resume: Lsn
    flush: Lsn  # the server's: nothing from there on was ever sent
    repeats: bool  # may it send what was sent before?
    replay: ReplayMark | None = None  # None: what Kafka has is not told otherwise


class DeliveredTransactions:
    """Ops that one sink leaves out, and the position of those that it sends.

    Called by its loop alone.
    """

    def __init__(
        self,
        sink: str,
        plan: TransactionPlan,
        place: HistoryPlace,
        meter: SinkMeter,
        disown: Callable[[], None] = lambda: None,
    ) -> None:
        """Call `disown` where the position is of another history, before Restart.

        The next stream is not to leave out anything by it.
        """
        self.plan = plan
        self._place = place
        self._sink = sink
        self._meter = meter
        self._disown = disown
        # does no other sink write to a topic?
        self.is_alone: Callable[[str], bool] = lambda _topic: True
        self._mark: TransactionPosition | None = None
        self.until = NEVER  # where the stream ends: it meets no mark from there on
        self._met = False
        self.waiting = 0  # ops whose topic is not known yet: they are met later
        self._first: Lsn = NEVER  # the first transaction that was left out
        self._last: TransactionPosition | None = None

    @property
    def repeats(self) -> bool:
        """Return whether it may be given what was sent before."""
        return self._place.repeats

    def covered(self, value: bytes | None) -> tuple[Lsn, int]:
        """Return the name up to which all ops are delivered; others come again.

        `value` is Kafka's position, which may not count.
        """
        place, found = self._place, decode_position(value or b"")
        delivered = (place.resume, -1)
        if found is None:
            return delivered
        if place.repeats and (
            strange(found, place.origin, place.flush) or is_before(found, place.replay)
        ):
            return delivered
        return max(delivered, (found.lsn, found.seq_id))

    def is_delivered(self, value: bytes) -> bool:
        """Return whether the state folder has all delivered that a position covers."""
        found = decode_position(value)
        return found is not None and found.lsn < self._place.resume

    def open(self, value: bytes | None) -> StartReport:
        """Take what Kafka has, before anything is sent; return what to say of it."""
        found = decode_position(value) if value is not None else None
        why = self.begin(found)
        if found is None and self._place.repeats:
            return no_position(self._place.resume, is_other=value is not None)
        up_to = self._mark.lsn if self._mark is not None else 0
        return of_position(why, up_to, self._place.resume)

    def begin(self, found: TransactionPosition | None) -> str:
        """Take Kafka's position; return why it does not count, or ""."""
        place = self._place
        self._last = found
        if found is None or not place.repeats:
            return ""
        if why := strange(found, place.origin, place.flush):
            return why
        if found.lsn < place.resume:
            return ""  # nothing comes of what it covers
        why = is_before(found, place.replay)
        if not why:
            self._mark = found
        return why

    def is_whole(self, counted: Counted, records: int) -> bool:
        """Return whether a transaction ended, and has so many records."""
        ended = isinstance(counted, Transaction) and counted.end_lsn is not None
        return ended and counted.undelivered == records

    def has(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Return whether Kafka has what becomes of an op; if not, it is sent now.

        Raises Restart where Kafka has something else.
        """
        if op.snapshot:
            return False
        mark = self._mark
        if mark is not None and mark.lsn >= self.until:
            mark = None
        if mark is not None and self._marked(mark, op, op.seq_id):
            # of one that waited for its topic it may be lower than of those before
            self._first = min(self._first, op.lsn)
            self._meter.left_out += 1
            return True
        transaction.last_seq_id = max(transaction.last_seq_id, op.seq_id)
        return False

    def has_message(self, message: MessageOp, transaction: Transaction) -> bool:
        """Return whether Kafka has a logical message; if not, it is sent now.

        Of a transaction that it has in part nobody knows: it may come again. One that
        is outside of any tells no position: it has another time whenever it is read.
        """
        mark, is_outside = self._mark, message.xid is None
        is_there = False
        if mark is not None and mark.lsn < self.until:
            if is_outside:
                is_there = message.lsn < mark.lsn
            else:
                is_there = self._marked(mark, message, LAST_SEQ_ID)
        if is_there:
            self._first = min(self._first, message.lsn)
        if not (is_there or is_outside):
            transaction.last_seq_id = max(transaction.last_seq_id, MESSAGES_ALONE)
        return is_there

    def _marked(
        self, mark: TransactionPosition, op: ReplicationOp | MessageOp, seq_id: int
    ) -> bool:
        if op.lsn > mark.lsn:
            if self._met or self.waiting:
                return False  # one below may come yet: its topic was not known
            if self._first != NEVER:
                raise self._other(mark)
            self._mark = None
            return False
        if op.lsn < mark.lsn:
            return True
        if op.commit_time != mark.commit_time:
            raise self._other(mark)
        self._met = True
        return seq_id <= mark.seq_id

    def proven(self, resume: Lsn) -> Lsn:
        """Return how far the position may go, of what is sent and delivered below.

        Raises Restart where the stream came past the mark without meeting it.
        """
        mark = self._mark
        if mark is None or self._first == NEVER or self._met:
            return resume
        if mark.lsn < resume:
            raise self._other(mark)
        return min(resume, self._first)

    def position(self, sent: Iterable[Counted], *, whole: bool) -> bytes | None:
        """Return the position of a Kafka transaction that has these; None: as before.

        Where not all are there whole, the last one is there up to its last op. Raises
        Restart where all that waited came by, and the mark was not among it: this one
        would take its place, and what was left out be lost.
        """
        named = [one for one in sent if isinstance(one, Transaction)]
        named = [one for one in named if one.last_seq_id >= MESSAGES_ALONE]
        if not named:
            return None
        last = max(named, key=_lsn_of)
        mark = self._mark
        left_out = self._first < NEVER and not self._met
        if mark is not None and left_out and last.lsn > mark.lsn:
            raise self._other(mark)
        seq_id = LAST_SEQ_ID if whole else last.last_seq_id
        replay = self._place.replay
        position = TransactionPosition(
            last.lsn,
            last.commit_time,
            self._place.origin,
            seq_id,
            replay.token if replay is not None else "",
        )
        if position == self._last:
            return None
        self._last = position
        return position.encode()

    def _other(self, mark: TransactionPosition) -> Restart:
        self._disown()
        return Restart(
            f"sink {self._sink!r}: the position {show(mark.lsn)} in topic"
            f" {self.plan.topic!r} is not of this server's history: the stream begins"
            " again, and leaves nothing out"
        )


def _lsn_of(transaction: Transaction) -> Lsn:
    return transaction.lsn
