"""Senders are used again, by one at a time, and not for ever."""

from dataclasses import replace

from walstream.kafka.bulk_producer import Outgoing
from walstream.kafka.bulk_producer_pool import BulkProducerPool, kind_of

OUTGOING = Outgoing("rows", {"bootstrap.servers": "127.0.0.1:1"})


def check() -> None:
    """End nothing."""


def test_a_sender_is_taken_again_and_never_by_two() -> None:
    senders = BulkProducerPool()
    first = senders.take(OUTGOING, "t", check)
    second = senders.take(OUTGOING, "t", check)
    assert first is not second
    senders.give_back(OUTGOING, first)
    assert senders.take(OUTGOING, "t", check) is first
    assert len(senders) == 0


def test_another_property_or_folder_is_another_kind() -> None:
    senders = BulkProducerPool()
    first = senders.take(OUTGOING, "t", check)
    senders.give_back(OUTGOING, first)
    other = replace(OUTGOING, producer={**OUTGOING.producer, "linger.ms": 3})
    assert senders.take(other, "t", check) is not first
    assert kind_of(OUTGOING) != kind_of(other)


def test_what_nobody_used_for_minutes_is_dropped() -> None:
    now = [1000.0]
    senders = BulkProducerPool(lambda: now[0])
    for _ in range(2):
        now[0] += 200
        senders.give_back(OUTGOING, senders.take(OUTGOING, "t", check))
    assert len(senders) == 1  # it is used all the time
    now[0] += 301
    senders.sweep()
    assert len(senders) == 0


def test_one_that_begins_again_knows_nothing_of_before() -> None:
    senders = BulkProducerPool()
    sender = senders.take(OUTGOING, "t", check)
    sender.sent = 7
    senders.give_back(OUTGOING, sender)
    assert senders.take(OUTGOING, "t", check).sent == 0
