"""Rules of several instances of one source, as `rules` takes them out."""

from dataclasses import replace
from typing import Any

from tests.simulation.installation import parts
from tests.simulation.instances import FIRST, NUMBERED
from walstream.kafka import freeze_clock
from walstream.kafka.producer_pool import ProducerPool
from walstream.kafka.topic_sink import TopicSink
from walstream.lsn import Lsn
from walstream.postgres import start_table, stream
from walstream.postgres.slot import Slot
from walstream.postgres.start_table import Decision, Step
from walstream.sources import delivered_topics

Patch = tuple[object, str, object]


def any_slot_is_taken() -> Patch:
    decide = start_table.decide

    def patched(*given: Any, adopt: bool) -> Decision:
        del adopt
        return decide(*given, adopt=True)

    return start_table, "decide", patched


def adopted_at_its_end() -> Patch:
    decide = start_table.decide

    def patched(*given: Any, adopt: bool) -> Decision:
        decision = decide(*given, adopt=adopt)
        if decision.step is Step.ADOPT:
            return replace(decision, resume=given[3].flush_lsn)
        return decision

    return start_table, "decide", patched


def moved_slot_looked_at_once() -> Patch:
    return stream, "_check_unread", lambda *_: None


def old_copies_stream() -> Patch:
    decide = start_table.decide

    def patched(*given: Any, adopt: bool) -> Decision:
        found: Slot | None = given[2]
        if found is not None and given[1].position is not None:
            below: Lsn = min(found.confirmed_flush_lsn or 0, given[1].position.resume)
            given = (*given[:2], replace(found, confirmed_flush_lsn=below), given[3])
        return decide(*given, adopt=adopt)

    return start_table, "decide", patched


def frozen_while_idle_goes_on() -> Patch:
    end = TopicSink._end_if_frozen

    def patched(self: TopicSink, outboxes: ProducerPool) -> None:
        if outboxes.in_flight:
            end(self, outboxes)
        else:
            self._clock.turn()

    return TopicSink, "_end_if_frozen", patched


def fenced_by_nobody() -> Patch:
    named = delivered_topics.transactional_ids

    def patched(slot: str, *given: Any) -> tuple[str, str]:
        owner = parts.server.world.owner
        name = owner.name if owner is not None else ""
        several = name.startswith((FIRST, NUMBERED))
        return named(f"{slot} {name}" if several else slot, *given)

    return delivered_topics, "transactional_ids", patched


def frozen_goes_on() -> Patch:
    def patched(self: freeze_clock.TurnClock) -> int:
        self.now_ms, _ = self._pulse.beat()
        return 0

    return freeze_clock.TurnClock, "turn", patched
