"""Plan of one batch: the ops that did not take effect yet, decoded.

A plan ends before whatever cannot share a batch: a Truncate, a poisonous record, a
record of another source, an op that has to be handled alone. As the first of a plan,
such a one is all of it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Final

from confluent_kafka import Message

from consumer.decoder import Decoder, record_of, source_of
from consumer.errors import SchemasAway, SchemasRefused
from consumer.group.assigned_partition import Place
from consumer.op import ConsumerRecord, Op
from consumer.state.position import SnapshotChunk, bygone, place_in_snapshot
from walstream.errors import WalstreamError
from walstream.op import Kind

_UNKNOWN: Final = -1
_TRUNCATE: Final = Kind.TRUNCATE  # slow to look up in Python 3.11


@dataclass(slots=True)
class BatchPlan:
    """The beginning of some messages."""

    ops: list[Op] = field(default_factory=list)
    taken: int = 0  # messages, with what was skipped
    next_offset: int = _UNKNOWN  # after all that was taken
    skipped: int = 0
    poison: tuple[ConsumerRecord, WalstreamError] | None = None  # the first one, alone
    foreign: str | None = None  # the source that the first one names, alone
    last: bool = False  # nothing may follow


@dataclass(slots=True)
class Planner:
    """Planner: it knows the position, and finds the ops that take effect."""

    place: Place
    position: tuple[int, int]
    source: str | None
    index_of: Callable[
        [SnapshotChunk], int
    ]  # the last row of this chunk that took effect
    alone: range = range(0)  # offsets
    reach: int = 0  # the LSN of the newest snapshot that came
    next_offset: int = 0  # what stands before it took effect
    decoder: Decoder = field(default_factory=Decoder)
    _chunks: dict[SnapshotChunk, int] = field(default_factory=dict)

    def plan(self, messages: Sequence[Message], start: int, limit: int) -> BatchPlan:
        """Look at the messages from `start` on, until there are `limit` ops."""
        plan = BatchPlan()
        place, ops, alone = self.place, plan.ops, self.alone
        for message in islice(messages, start, None):
            record = record_of(message, place)
            if not self._add(plan, record):
                break
            plan.taken += 1
            plan.next_offset = record.offset + 1
            if len(ops) >= limit or plan.last or (alone and record.offset in alone):
                break
        return plan

    def _add(self, plan: BatchPlan, record: ConsumerRecord) -> bool:
        """Take a record in, or tell that the plan ends before it."""
        first = plan.taken == 0
        if record.headers and self._is_foreign(record):
            if first:
                plan.foreign = source_of(record)
            return False
        try:
            op = self.decoder.op_of(record)
        except WalstreamError as error:
            if first and isinstance(error, SchemasAway | SchemasRefused):
                raise
            if first:
                plan.poison, plan.last = (record, error), True
            return first
        if op is None:
            plan.skipped += 1
            return True
        truncates = op.kind is _TRUNCATE
        if plan.ops and (truncates or (self.alone and record.offset in self.alone)):
            return False
        if self._passed(op):
            plan.skipped += 1
            return True
        plan.ops.append(op)
        plan.last = truncates
        return True

    def _is_foreign(self, record: ConsumerRecord) -> bool:
        named = source_of(record)
        return named is not None and named != self.source

    def _passed(self, op: Op) -> bool:
        """Return whether it took effect already, else go on to it.

        Of an op that has no name of its own the offset alone tells it: an equal or
        lower position may be another op's.
        """
        if not op.exact:
            return op.record.offset < self.next_offset
        if not op.snapshot:
            position = (op.lsn, op.seq_id)
            if position <= self.position:
                return True
            self.position = position
            return False
        if op.lsn < bygone(max(self.position[0], self.reach)):
            return True
        chunk, index = place_in_snapshot(op.lsn, op.seq_id)
        if chunk not in self._chunks:
            self._chunks[chunk] = self.index_of(chunk)
        if index <= self._chunks[chunk]:
            return True
        self._chunks[chunk] = index
        return False
