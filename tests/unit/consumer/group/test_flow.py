"""What is fetched of which partitions: one budget, and nobody starves."""

import threading
from dataclasses import dataclass, field

import pytest
from confluent_kafka import KafkaException, Message, TopicPartition

from consumer.group.assigned_partition import AssignedPartition, Pause, Place
from consumer.group.buffer import Budget, size
from consumer.group.flow import FetchBudget
from consumer.group.thread_pool import Pool

_MIB = 1 << 20


@dataclass
class Log:
    """A consumer of partitions whose logs are always longer than what is asked for."""

    length: int
    positions: dict[int, int] = field(default_factory=dict)
    paused: set[int] = field(default_factory=set)
    refuses: bool = False

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.paused.update(one.partition for one in partitions)

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.paused.difference_update(one.partition for one in partitions)

    def seek(self, partition: TopicPartition) -> None:
        if self.refuses:
            raise KafkaException("erroneous state")
        self.positions[partition.partition] = partition.offset

    def read(self, number: int, count: int) -> list[Message]:
        """Give what librdkafka would of one partition."""
        if number in self.paused:
            return []
        first = self.positions.get(number, 0)
        self.positions[number] = first + count
        value = b"x" * self.length
        return [Message(offset=first + n, value=value) for n in range(count)]


class Idle:
    """A work that never handles anything: the test takes from the inboxes."""

    wanted = 1
    holds = False

    def begin(self) -> None:
        raise Pause(1000)

    def handle(self, messages: list[Message]) -> int:
        return len(messages)

    def rest(self) -> float | None:
        return None

    def end(self) -> None:
        """Nothing is held."""


class Stage:
    """Lanes, their log, and the flow between them."""

    def __init__(self, lanes: int, length: int, budget: int = 16 * _MIB) -> None:
        self.now = 0.0
        self.budget = Budget(budget)
        self.pool = Pool(1)
        self.log = Log(length)
        woken = threading.Event()
        woken.set()  # nothing waits here
        self.lanes = {}
        for number in range(lanes):
            place = Place("t", number)
            lane = self.lanes[place] = AssignedPartition(
                place, lambda: None, self.budget
            )
            lane.start(Idle(), self.pool)
        self.flow = FetchBudget(
            self.log, self.budget, self.lanes, woken, lambda: self.now
        )
        self.turn = 0
        self.next = dict.fromkeys(range(lanes), 0)

    def lane(self, number: int) -> AssignedPartition:
        return self.lanes[Place("t", number)]

    def round(self, wanted: int = 1 << 30) -> None:
        """Fetch as the fetcher does: as much as it may, of the next that has any."""
        self.flow.resume()
        most = min(wanted, self.flow.most())
        for n in range(1, len(self.lanes) + 1):
            number = (self.turn + n) % len(self.lanes)
            messages = self.log.read(number, most)
            if messages:
                self.flow.put(self.lane(number), messages)
                self.turn = number
                return

    def handle(self, number: int, count: int) -> int:
        """Handle some, and see that none is missing or comes twice."""
        lane = self.lane(number)
        taken = lane.inbox.take(count)
        for message in taken:
            assert message.offset() == self.next[number]
            self.next[number] += 1
        lane.inbox.release(taken)
        return len(taken)

    def close(self) -> None:
        for lane in self.lanes.values():
            lane.stop()
        self.pool.close()


@pytest.mark.parametrize("length", [10, 1000, 300_000, 3_000_000])
def test_all_together_keep_the_budget_and_all_get_on(length: int) -> None:
    stage = Stage(20, length)
    most = 0
    for number in range(1500):
        stage.now += 0.05
        stage.round()
        most = max(most, stage.budget.held)
        stage.handle(number % 20, 3)
    assert most <= stage.budget.most + size([Message(value=b"x" * length)])
    assert min(stage.next.values()) > 0
    stage.close()


def test_those_that_do_not_get_on_make_room_for_who_has_nothing() -> None:
    """As at a barrier: all wait for the last one, which needs many messages."""
    stage = Stage(30, 100_000)
    for _ in range(1500):
        stage.now += 0.05
        stage.round()
        stage.handle(29, 100)
    assert stage.next[29] > 200
    assert stage.budget.held <= stage.budget.most + 101_000
    stage.close()


def test_one_slow_partition_leaves_the_others_alone() -> None:
    stage = Stage(2, 1000)
    for _ in range(100):
        stage.now += 0.05
        stage.flow.resume()
        most = stage.flow.most()
        stage.flow.put(stage.lane(0), stage.log.read(0, most) or [Message(value=b"")])
        if most and (messages := stage.log.read(1, min(most, 1000))):
            stage.flow.put(stage.lane(1), messages)
        while stage.handle(1, 1000):
            pass
    assert stage.next[1] > 20_000
    stage.close()


def test_what_all_have_in_hand_does_not_keep_one_from_its_first_message() -> None:
    stage = Stage(3, 9 * _MIB)
    for number in (0, 1):
        stage.flow.put(stage.lane(number), stage.log.read(number, 1))
        stage.lane(number).inbox.take(1)  # in hand, for as long as the test lasts
    for _ in range(100):
        stage.now += 0.05
        stage.round(1)
    assert stage.handle(2, 1) == 1
    stage.close()


@pytest.mark.parametrize("mib", range(11, 17))
def test_no_room_is_too_little_for_a_first_message(mib: int) -> None:
    """Whatever is in hand: also where it is neither tight nor enough to go on."""
    stage = Stage(2, _MIB - 512)
    for _ in range(mib):
        assert stage.lane(0).put(stage.log.read(0, 1), force=True) == 1
        stage.lane(0).inbox.take(1)
    stage.flow.put(stage.lane(1), stage.log.read(1, 30))
    stage.handle(1, 30)
    before = stage.next[1]
    for _ in range(100):
        stage.now += 0.05
        stage.round(1)
        stage.handle(1, 1)
    assert stage.next[1] > before
    stage.close()


def test_a_seek_that_fails_is_tried_again() -> None:
    stage = Stage(1, 9 * _MIB)
    stage.flow.put(stage.lane(0), stage.log.read(0, 3))
    assert stage.log.paused == {0}
    stage.log.refuses = True
    while stage.handle(0, 1):
        pass
    stage.round()
    assert stage.log.paused == {0}
    stage.log.refuses = False
    stage.round()
    assert stage.handle(0, 1) == 1
    stage.close()


def test_what_is_revoked_is_left_unpaused() -> None:
    stage = Stage(1, 9 * _MIB)
    stage.flow.put(stage.lane(0), stage.log.read(0, 3))
    assert stage.log.paused == {0}
    stage.flow.forget([stage.lane(0)])
    assert stage.log.paused == set()
    stage.close()
