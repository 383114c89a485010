"""Kafka's messages for the assembler, and whose they are.

A producer's first record in a partition names its source. LSNs of two histories cannot
be compared: a partition that comes to another one waits there, until the transaction
topic comes to it too and all before was handled.
"""

from collections.abc import Callable
from dataclasses import dataclass

from confluent_kafka import Message

from consumer.decoder import Decoder, record_of, source_of
from consumer.errors import Incomplete, PoisonRecord, SchemasAway, SchemasRefused
from consumer.group.assigned_partition import Place
from consumer.group.fetch_error import is_end, meet_fetch_error
from consumer.op import ConsumerRecord, EnvelopeOp, Op
from consumer.poison import OnPoison, meet
from consumer.whole.assembler import TransactionAssembler
from consumer.whole.lane import Lane
from consumer.whole.told import ToldTransaction, read_told
from walstream.errors import WalstreamError
from walstream.op import Kind


@dataclass(frozen=True, slots=True)
class Foreign:
    """The place at which the transaction topic comes to another source."""

    source: str
    offset: int


class Intake:
    """Hands a reader's messages on, as long as they are of its source."""

    def __init__(  # noqa: PLR0913 - keywords
        self,
        assembler: TransactionAssembler,
        decoder: Decoder,
        *,
        transactions: str,
        source: str | None,
        on_poison: OnPoison,
        poisoned: Callable[[Place], object],
    ) -> None:
        """Read `transactions` as the transaction topic; `poisoned` counts records."""
        self._assembler = assembler
        self._decoder = decoder
        self._spine = Place(transactions, 0)
        assembler.spine.place = self._spine
        self.source = source
        self._on_poison = on_poison
        self._poisoned = poisoned
        self.foreign: Foreign | None = None

    def put(self, message: Message) -> None:
        """Take in a message; raise what stops the reader."""
        place = Place(message.topic() or "", message.partition() or 0)
        lane = self._assembler.lanes.get(place)
        if message.error() is not None:
            if not is_end(message):
                meet_fetch_error(message)
            elif place == self._spine:
                if self.foreign is None:
                    self._assembler.pass_over(place, message.offset() or 0)
            elif lane is not None and lane.blocked_at is None:
                self._assembler.pass_over(place, message.offset() or 0)
            return
        record = record_of(message, place)
        if place == self._spine:
            self._put_told(record)
        elif lane is not None and self._is_ours(lane, record):
            self._put_op(place, record)

    def _put_told(self, record: ConsumerRecord) -> None:
        if self.foreign is not None:
            return
        named = source_of(record)
        if named is not None and named != self.source:
            if self.source is not None:
                self.foreign = Foreign(named, record.offset)
                return
            self.source = named
        if record.value is None:
            self._assembler.pass_told(record.offset + 1)
            return
        try:
            told = read_told(record.value)
        except WalstreamError as error:
            raise PoisonRecord(
                f"{record!r} cannot be read: {error.args[0]}",
                hint=error.hint or "check who else writes to this topic",
            ).at(*self._spine, record.offset) from None
        if isinstance(told, ToldTransaction):
            self._assembler.tell(told, record.offset)
        else:
            self._assembler.mark(told, record.offset)

    def _is_ours(self, lane: Lane, record: ConsumerRecord) -> bool:
        """Return whether it is of the source that is read; block a lane of a later."""
        if lane.blocked_at is not None:
            return False
        named = source_of(record) if record.headers else None
        if named is not None and named != lane.source:
            ours = lane.source in (None, self.source)
            if named != self.source and ours and not self._adopts(named):
                lane.block(record.offset, named)
                return False
            lane.source = named
        if lane.source in (None, self.source):
            return True
        self._assembler.pass_over(lane.place, record.offset + 1)  # of an earlier one
        return False

    def _adopts(self, named: str) -> bool:
        """Take the first source that is met, where no transaction is told yet."""
        if self.source is None and self._assembler.spine.has_read(0):
            self.source = named
            return True
        return False

    def release(self) -> dict[Place, int]:
        """Unblock lanes that waited to know the first source; return where they go on.

        They are blocked again if it is none of theirs.
        """
        known = self.source
        if known is None and not self._assembler.spine.has_read(0):
            return {}
        found = {}
        for place, lane in self._assembler.lanes.items():
            if lane.blocked_at is not None and known in (None, lane.blocked_by):
                found[place] = lane.blocked_at
                lane.unblock()
        return found

    def _put_op(self, place: Place, record: ConsumerRecord) -> None:
        try:
            op = self._decoder.op_of(record)
        except (SchemasAway, SchemasRefused):
            raise
        except WalstreamError as error:
            self._poisoned(place)
            meet(self._on_poison, record, error)
            op = None
        if op is None:
            self._assembler.pass_over(place, record.offset + 1)
            return
        if not op.exact:
            raise PoisonRecord(
                f"the ops of {place} do not name their transactions: offset"
                f" {record.offset} was written by Debezium itself, or by a sink without"
                " transaction_block",
                hint="read it with IdempotentConsumer or BasicConsumer",
            ).at(*place, record.offset)
        if isinstance(op, EnvelopeOp):
            # the transactions have an order, whatever partition a Truncate is in
            op.topic_partitions = 1 if _is_ordered(op) else 0
        if not self._assembler.take(op):
            raise _handled_without(place, op)


def _is_ordered(op: Op) -> bool:
    return not (op.snapshot and op.kind is Kind.TRUNCATE)


def _handled_without(place: Place, op: Op) -> Incomplete:
    return Incomplete(
        f"{op!r}: its transaction was handled before the group read {place.topic}, or"
        " the topic was there before its transactions were told",
        hint="read it with a new group, into tables that a backfill fills",
    ).at(*place, op.record.offset)
