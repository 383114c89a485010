"""What waits to be handled, and the bytes of it."""

from confluent_kafka import Message

from consumer.group.buffer import Budget, Inbox, size

_MIB = 1 << 20


def some(count: int, length: int = 1, first: int = 0) -> list[Message]:
    value = b"x" * length
    return [Message(offset=first + number, value=value) for number in range(count)]


def offsets(messages: list[Message]) -> list[int | None]:
    return [message.offset() for message in messages]


def test_messages_come_in_order_as_many_as_are_wanted() -> None:
    inbox = Inbox(Budget())
    assert inbox.put(some(3)) == 3
    assert inbox.put(some(4, first=3)) == 4
    assert offsets(inbox.take(5)) == [0, 1, 2, 3, 4]
    assert offsets(inbox.take(5)) == [5, 6]
    assert inbox.take(5) == []
    assert inbox.empty


def test_of_large_messages_fewer_are_taken() -> None:
    inbox = Inbox(Budget())
    inbox.put(some(5, 400_000))
    assert offsets(inbox.take(5)) == [0, 1, 2]
    assert offsets(inbox.take(5)) == [3, 4]


def test_what_is_in_hand_counts_until_it_is_released() -> None:
    drained: list[int] = []
    budget = Budget(most=10_000, drained=lambda: drained.append(1))
    inbox = Inbox(budget)
    inbox.put(some(6, 500))
    held = budget.held
    taken = inbox.take(6)
    assert budget.held == held == size(taken) > 5000
    assert drained == []
    inbox.release(taken)
    assert budget.held == inbox.bytes == 0
    assert drained == [1]


def test_what_was_put_back_comes_first_and_can_be_shed() -> None:
    budget = Budget()
    inbox = Inbox(budget)
    inbox.put(some(6))
    held = budget.held
    hand = inbox.take(4)
    inbox.release(hand[:1])
    inbox.put_back(hand[1:])
    assert budget.held == held // 6 * 5
    assert offsets(inbox.take(2)) == [1, 2]
    assert inbox.shed(0) == 3


def test_each_partition_leaves_room_for_the_others() -> None:
    budget = Budget(most=16 * _MIB)
    inboxes = [Inbox(budget) for _ in range(3)]
    for inbox in inboxes:
        assert inbox.put(some(40, _MIB)) < 40
    assert 0 < budget.free < 2 * _MIB
    assert inboxes[0].bytes > 8 * _MIB - 1000
    assert all(inbox.bytes >= _MIB for inbox in inboxes)


def test_the_budget_is_exceeded_by_one_message_at_most() -> None:
    budget = Budget(most=_MIB)
    first, second = Inbox(budget), Inbox(budget)
    assert first.put(some(3, 5 * _MIB)) == 1
    assert second.put(some(2)) == 0
    assert budget.held < 5 * _MIB + 1000
    assert second.put(some(2), force=True) == 1


def test_the_last_ones_are_shed() -> None:
    inbox = Inbox(Budget())
    inbox.put(some(10, 1000))
    hand = inbox.take(2)
    assert inbox.shed(4 * size(some(1, 1000))) == 4
    assert inbox.bytes == size(some(4, 1000))
    assert inbox.shed(0) == 2
    assert inbox.bytes == size(hand)
    assert inbox.shed(0) is None


def test_a_closed_one_holds_nothing() -> None:
    budget = Budget()
    inbox = Inbox(budget)
    inbox.put(some(2))
    taken = inbox.take(1)
    inbox.close()
    assert budget.held == 0
    assert inbox.put(some(2)) == 2
    inbox.put_back(taken)
    inbox.release(taken)
    assert inbox.empty
    assert budget.held == inbox.bytes == 0
