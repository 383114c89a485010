"""How long a batch waits to be full."""

from confluent_kafka import Message

from consumer.group.buffer import HAND, Budget, Inbox
from consumer.group.linger import Linger


def messages(count: int, size: int = 1) -> list[Message]:
    return [Message(offset=at, value=b"x" * size) for at in range(count)]


def test_a_batch_waits_until_it_is_full_or_its_first_message_is_old() -> None:
    now = 100.0
    inbox, linger = Inbox(Budget()), Linger(2, 3, lambda: now)
    assert linger.left(inbox) == 0  # there is nothing to wait with
    now = 110.0
    inbox.put(messages(1))
    assert linger.left(inbox) == 2
    now = 111.5
    inbox.put(messages(1))
    assert linger.left(inbox) == 0.5
    inbox.put(messages(1))
    assert linger.left(inbox) == 0  # full
    inbox.take(2)
    assert linger.left(inbox) == 2  # the next batch
    now = 113.5
    assert linger.left(inbox) == 0


def test_large_messages_fill_a_batch_too() -> None:
    inbox, linger = Inbox(Budget()), Linger(2, 3)
    inbox.put(messages(1, HAND))
    assert linger.left(inbox) == 0
