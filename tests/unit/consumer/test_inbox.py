"""What waits to be handled."""

import threading

from confluent_kafka import Message

from consumer.inbox import Inbox


def some(count: int, size: int = 1) -> list[Message]:
    return [Message(offset=number, value=b"x" * size) for number in range(count)]


def test_chunks_come_in_order_until_enough_are_taken() -> None:
    inbox = Inbox()
    for count in (2, 3, 4):
        inbox.put(some(count))
    assert len(inbox.take(3, 0)) == 5
    assert len(inbox.take(1, 0)) == 4
    assert inbox.take(1, 0) == []
    assert inbox.empty


def test_many_records_or_many_bytes_make_it_full() -> None:
    records, large = Inbox(), Inbox()
    records.put(some(10_000))
    large.put(some(16, 1 << 20))
    assert records.full
    assert large.full
    assert not records.drained
    large.take(1, 0)
    assert large.drained
    records.clear()
    assert records.empty


def test_a_close_ends_the_waiting() -> None:
    inbox = Inbox()
    threading.Timer(0.05, inbox.close).start()
    assert inbox.take(1, 20) == []


def test_a_closed_one_holds_nothing() -> None:
    inbox = Inbox()
    inbox.put(some(2))
    inbox.close()
    inbox.put(some(2))
    assert inbox.empty
    assert inbox.take(1, 0) == []
