"""How long a batch waits to be full."""

from confluent_kafka import Message

from consumer.group.buffer import HAND, Budget, Inbox
from consumer.group.linger import Linger


def messages(first: int, count: int, size: int = 1) -> list[Message]:
    return [Message(offset=at, value=b"x" * size) for at in range(first, first + count)]


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Arriving:
    """An inbox, and the linger that sees what comes into it."""

    def __init__(self) -> None:
        self.clock, self.inbox = Clock(), Inbox(Budget())
        self._linger, self._next = Linger(2, 3, self.clock), 0

    def arrive(self, count: int, size: int = 1) -> None:
        new = messages(self._next, count, size)
        self._next += count
        self._linger.see(new)
        self.inbox.put(new)

    def take(self) -> list[Message]:
        hand = self.inbox.take(3)
        self._linger.took(hand)
        return hand

    def seek(self, offset: int) -> None:
        self.inbox.clear()
        self._linger.forget()
        self._next = offset

    @property
    def left(self) -> float:
        return self._linger.left(self.inbox)


def test_a_batch_waits_until_it_is_full_or_its_first_message_is_old() -> None:
    one = Arriving()
    assert one.left == 0  # there is nothing to wait with
    one.clock.now = 110.0
    one.arrive(1)
    assert one.left == 2
    one.clock.now = 111.5
    one.arrive(1)
    assert one.left == 0.5
    one.arrive(2)
    assert one.left == 0  # full
    one.take()
    assert one.left == 2  # the next batch
    one.clock.now = 113.5
    assert one.left == 0


def test_large_messages_fill_a_batch_too() -> None:
    one = Arriving()
    one.arrive(1, HAND)
    assert one.left == 0


def test_what_was_due_does_not_wait_again() -> None:
    """GIVEN a full batch of which a part comes again, THEN at once."""
    one = Arriving()
    one.arrive(3)
    assert one.left == 0
    hand = one.take()
    one.inbox.put_back(hand[1:])
    assert one.left == 0
    hand = one.take()
    one.arrive(1)
    one.inbox.put_back(hand[1:])
    assert one.left == 0
    assert len(one.inbox.take(1)) == 1
    assert one.left == 2  # this one was not handed out before


def test_what_waited_behind_a_slow_batch_is_due_when_that_ends() -> None:
    one = Arriving()
    one.arrive(3)
    one.take()
    one.arrive(1)
    one.clock.now += 60
    assert one.left == 0


def test_what_comes_after_a_seek_waits_anew() -> None:
    one = Arriving()
    one.arrive(3)
    one.take()
    one.clock.now += 60
    one.seek(1)
    one.arrive(1)
    assert one.left == 2
