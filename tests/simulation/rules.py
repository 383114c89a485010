"""Rules of order and confirmation, each of which can be taken out of walstream.

A search that does not find what is missing then would find nothing else either.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from consumer.state.partition_state import PartitionState, StateRow
from consumer.state.plan import Planner
from consumer.state.truncate_barrier import Barrier, Turn
from tests.simulation import existing_rows as existing
from tests.simulation import group_rules, relay_rules, takeovers, transaction_rules
from tests.simulation.schedule import Schedule
from walstream.errors import WalstreamError
from walstream.kafka import producer_config
from walstream.kafka.last_record import DeliveredRecords
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.topic import Topic
from walstream.lsn import Lsn
from walstream.pipeline.checkpoint import Checkpointer
from walstream.pipeline.fanout import Fanout
from walstream.pipeline.ledger import Counted, Ledger
from walstream.pipeline.loop import Pipeline
from walstream.pipeline.sent_position import Reach
from walstream.postgres import start_table, stream
from walstream.postgres.start_table import Decision, Step

Patch = tuple[object, str, object]


def _confirmed_before_stored() -> Patch:
    submit = Checkpointer._submit

    def patched(self: Checkpointer, resume: Lsn, now: float) -> None:
        self._confirm(resume)
        submit(self, resume, now)

    return Checkpointer, "_submit", patched


def _stored_before_delivered() -> Patch:
    def patched(self: Ledger) -> Lsn:
        queue = self._queue
        while queue and queue[0].end_lsn is not None:
            self._resume = queue.popleft().end_lsn or 0
        return self._resume

    return Ledger, "advance", patched


def _keepalive_in_flight() -> Patch:
    advance = Ledger.advance

    def patched(self: Ledger, wal_end: Lsn) -> None:
        advance(self)
        self._resume = max(self._resume, wal_end)

    return Ledger, "keepalive", patched


def _fastest_sink() -> Patch:
    def patched(self: Fanout) -> Lsn:
        return max(lane.ledger.advance() for lane in self._lanes)

    return Fanout, "advance", patched


def _first_delivery() -> Patch:
    report = OrderedProducer.hear

    def patched(
        self: OrderedProducer, transaction: Counted, error: Any, message: Any
    ) -> None:
        report(self, transaction, error, message)
        if error is None:
            transaction.undelivered = 0

    return OrderedProducer, "hear", patched


def _failed_delivery() -> Patch:
    report = OrderedProducer.hear

    def patched(
        self: OrderedProducer, transaction: Counted, _error: object, message: Any
    ) -> None:
        report(self, transaction, None, message)

    return OrderedProducer, "hear", patched


def _sent_again_behind() -> Patch:
    report = OrderedProducer.hear

    def patched(
        self: OrderedProducer, transaction: Counted, error: Any, message: Any
    ) -> None:
        if error is None:
            report(self, transaction, error, message)
            return
        again = message.record
        transaction.undelivered -= 1
        self.put(
            again.topic, again.value, again.key, again.partition, 0, transaction, None
        )

    return OrderedProducer, "hear", patched


def _failed_write() -> Patch:
    store = Checkpointer._store

    def patched(self: Checkpointer, position: Any) -> None:
        store(self, position)
        if self.error is not None:
            self.error, self._stored = None, position.resume

    return Checkpointer, "_store", patched


def _behind_position() -> Patch:
    command = stream.start_command

    def patched(slot: str, resume: Lsn, *rest: Any, **named: Any) -> str:
        return command(slot, resume + 1, *rest, **named)

    return stream, "start_command", patched


def _gap_ignored() -> Patch:
    decide = start_table.decide

    def patched(source: str, stored: Any, *rest: Any, **named: Any) -> Decision:
        try:
            return decide(source, stored, *rest, **named)
        except WalstreamError:
            slot = rest[0]
            if slot is None or stored.position is None:
                raise
            return Decision(Step.STREAM, stored.position.resume)

    return start_table, "decide", patched


def _moved_slot_ignored() -> Patch:
    return start_table, "check_confirmed", lambda *_: None


def _bound_not_stored() -> Patch:
    return Reach, "admits", lambda _self, _lsn: True


def _confirmed_when_read() -> Patch:
    def patched(self: Pipeline) -> None:
        last = self._last_commit
        self._checkpointer.advance(max(last, self.fanout.advance()), last)

    return Pipeline, "_advance", patched


@dataclass(frozen=True)
class Rule:
    """One of them; schedules without a fault of `needs` cannot show that it is out."""

    patches: tuple[Callable[[], Patch], ...]
    needs: frozenset[str] = frozenset()
    part: str = ""  # or of which this, or one of these, is empty

    def concerns(self, schedule: Schedule) -> bool:
        faults = {what for _, what in (*schedule.faults, *schedule.ddl)}
        for part in self.part.split():
            steps = getattr(schedule, part)
            faults |= {what for _, what in steps}
            if not steps:
                return False
        return not self.needs or bool(self.needs & faults)


_WRITES: Final = frozenset(("full disk", "failed write"))
_LEADERLESS: Final = frozenset(("leaderless",))


def _state_not_compared() -> Patch:
    move = PartitionState.move

    def patched(
        self: PartitionState, tx: Any, xid: str, _before: StateRow, after: StateRow
    ) -> bool:
        return move(self, tx, xid, self.read(tx), after)

    return PartitionState, "move", patched


def _barrier_passed() -> Patch:
    return Barrier, "arrive", lambda _self, _tx: Turn.RUN


def _taken_again() -> Patch:
    return Planner, "_passed", lambda _self, _op: False


def _lost_ignored() -> Patch:
    return start_table, "_check_given", lambda *_: None


def _sent_again() -> Patch:
    return DeliveredRecords, "has", lambda *_: False


def _drain_cut_short() -> Patch:
    return Pipeline, "_drain", lambda _self, _stop: True


def _no_gapless() -> Patch:
    names = {**producer_config._DEFAULTS, "enable.gapless.guarantee": False}
    return producer_config, "_DEFAULTS", names


def _first_not_awaited() -> Patch:
    init = Topic.__init__

    def patched(self: Topic, *found: Any, **named: Any) -> None:
        init(self, *found, **named)
        self.unproven = set()

    return Topic, "__init__", patched


def _no_offset_counts() -> Patch:
    report = OrderedProducer.hear

    def patched(
        self: OrderedProducer, transaction: Counted, error: Any, message: Any
    ) -> None:
        message.offset = lambda: 0
        report(self, transaction, error, message)

    return OrderedProducer, "hear", patched


_OUT: Final = frozenset(("drop table", "drop and add table"))
RULES: Final = {
    "stored before it is confirmed": Rule((_confirmed_before_stored,)),
    "delivered before it is stored": Rule((_stored_before_delivered,)),
    "a keepalive counts while nothing is in flight": Rule((_keepalive_in_flight,)),
    "the slowest sink decides": Rule((_fastest_sink,)),
    "every record of a transaction is delivered": Rule((_first_delivery,)),
    "a failed delivery is none": Rule((_failed_delivery, _no_gapless)),
    "nothing overtakes a failed record": Rule(
        (_sent_again_behind, _no_gapless), frozenset(("refuse",))
    ),
    "a producer that failed sends nothing more": Rule(
        (_no_gapless,), frozenset(("refuse",))
    ),
    "the first record in a partition is acknowledged before the next": Rule(
        (_first_not_awaited,), frozenset(("refuse first",))
    ),
    # alone it is for brokers that forgot a producer: within a day they forget none
    "a report without an offset is no delivery": Rule(
        (_first_not_awaited, _no_offset_counts), frozenset(("refuse first",))
    ),
    "a failed write stores nothing": Rule((_failed_write,), _WRITES),
    "the stream begins at the position": Rule((_behind_position,)),
    "a slot beyond the position stops the start": Rule(
        (_gap_ignored, _moved_slot_ignored), frozenset(("advance slot", "yesterday"))
    ),
    "how far commits are sent is on disk before": Rule((_bound_not_stored,)),
    "a batch of a lost partition takes no effect": Rule((_state_not_compared,)),
    "a truncation waits for every partition": Rule((_barrier_passed,)),
    "what took effect is passed over": Rule((_taken_again,)),
    "what Kafka has is left out": Rule((_sent_again,)),
    "a drain waits for what is in flight": Rule(
        (_drain_cut_short,), frozenset(("stop",))
    ),
    "a failover that lost what was sent stops the start": Rule(
        (_lost_ignored,), frozenset(("failover",))
    ),
    "what is read is not yet delivered": Rule((_confirmed_when_read,)),
    "a slot that was read during the backfill stops the stream": Rule(
        (_moved_slot_ignored,), frozenset(("advance slot",)), part="rows"
    ),
    "a table is backfilled with its last chunk": Rule(
        (existing.done_with_its_first_chunk,), part="rows"
    ),
    "the stream goes up to a later snapshot first": Rule(
        (existing.not_up_to_the_snapshot,), part="rows"
    ),
    "a chunk is done when Kafka has it": Rule(
        (existing.chunk_not_delivered,), part="rows"
    ),
    "a chunk's first record in a partition is acknowledged before the next": Rule(
        (existing.first_row_not_awaited,), frozenset(("refuse first",)), part="rows"
    ),
    "a slot is adopted by who is told to": Rule(
        (takeovers.any_slot_is_taken,), part="instances"
    ),
    "a slot is adopted where it is confirmed": Rule(
        (takeovers.adopted_at_its_end,), part="instances"
    ),
    "an old copy of a state does not stream": Rule(
        (takeovers.old_copies_stream, takeovers.moved_slot_looked_at_once),
        part="instances",
    ),
    "who was frozen gives up what it had": Rule(
        (takeovers.frozen_goes_on,), part="instances"
    ),
    "who was frozen while idle begins again, too": Rule(
        (takeovers.frozen_while_idle_goes_on,), part="instances"
    ),
    "instances of a source have one transactional id": Rule(
        (takeovers.fenced_by_nobody,), part="instances transactions"
    ),
    "a session that is lost is opened again": Rule(
        (group_rules.lost_sessions_fail,), part="members"
    ),
    "what was rolled back is done again": Rule(
        (group_rules.rolled_back_counts,), part="members"
    ),
    "a mirror is emptied as its table is": Rule(
        (group_rules.truncations_passed,), part="members"
    ),
    "a group stops where unread records were deleted": Rule(
        (group_rules.deleted_passed_over,), frozenset(("retention",)), part="members"
    ),
    "a relay stores an offset when every sink has what is below": Rule(
        (relay_rules.stored_before_delivered,), part="relays"
    ),
    "a relay's source is kept beside its offsets": Rule(
        (relay_rules.source_not_kept,), part="relays"
    ),
    "a relay stops at a topic that was created again": Rule(
        (relay_rules.created_again_ignored,), frozenset(("recreate",)), part="relays"
    ),
    "a relay stops where unread records were deleted": Rule(
        (relay_rules.deleted_passed_over,), frozenset(("retention",)), part="relays"
    ),
    "a relay whose offsets are gone does not begin again": Rule(
        (relay_rules.begun_again,), frozenset(("forget offsets",)), part="relays"
    ),
    "a relay's group stores where it begins": Rule(
        (relay_rules.beginnings_not_stored, relay_rules.begins_wherever),
        frozenset(("retention",)),
        part="relays",
    ),
    "an upstream partition has one transactional id": Rule(
        (relay_rules.fenced_by_nobody,), part="relays transactions"
    ),
    "what a relay's transactions have is left out": Rule(
        (relay_rules.copied_records_sent_again,), part="relays transactions"
    ),
    "a record is delivered when its transaction is committed": Rule(
        (transaction_rules.delivered_before_committed,), part="transactions"
    ),
    "what Kafka's transactions have is left out": Rule(
        (transaction_rules.committed_ops_sent_again,), part="transactions"
    ),
    "a transaction of the source is committed whole": Rule(
        (transaction_rules.committed_in_parts,), part="transactions"
    ),
    "a start ends what Kafka left open": Rule(
        (transaction_rules.open_ones_not_ended,), _LEADERLESS, part="transactions"
    ),
    "a mirror writes nothing older over a row": Rule(
        (group_rules.older_rows_written,), part="members"
    ),
    "missing keys of a polled table are looked for": Rule(
        (existing.gaps_not_noted,), part="polls"
    ),
    "a missing key is waited for while its transaction is open": Rule(
        (existing.gaps_forgotten_in_time,), part="polls"
    ),
    "what was out of the publication is read again": Rule(
        (existing.not_read_again,), _OUT
    ),
    "a change of the publication that was undone counts": Rule(
        (existing.any_way_goes_on,), _OUT
    ),
    "a root of which a partition was away is read again": Rule(
        (existing.partition_away,), frozenset(("detach",))
    ),
    "what was sent without a key is read again": Rule(
        (existing.key_is_back,), frozenset(("drop key", "identity nothing"))
    ),
    "changes of before a table's identity are read again": Rule(
        (existing.widened_ignored,), frozenset(("drop key", "identity nothing"))
    ),
}


@contextmanager
def taken_out(rule: str) -> Iterator[None]:
    """Have walstream break one of them, until the end of the block."""
    before: list[tuple[Any, str, object]] = []
    for patch in RULES[rule].patches:
        owner, name, patched = patch()
        real = getattr(owner, name)
        places = [(owner, name), *_elsewhere(owner, real)]
        for place, found in places:
            before.append((place, found, real))
            setattr(place, found, patched)
    try:
        yield
    finally:
        for place, found, real in before:
            setattr(place, found, real)


def _elsewhere(owner: object, real: object) -> list[tuple[Any, str]]:
    """Find the modules that import it."""
    return [
        (module, found)
        for title, module in list(sys.modules.items())
        if title.startswith(("walstream", "consumer")) and module is not owner
        for found, value in list(vars(module).items())
        if value is real
    ]
