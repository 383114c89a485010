"""A partition's turns."""

import sys
import threading
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Message

from consumer.errors import HandlerFailed
from consumer.group.assigned_partition import AssignedPartition, Pause, Place
from consumer.group.buffer import Budget
from consumer.group.linger import Linger
from consumer.group.thread_pool import Pool
from tests.support.deadline import wait_until

_PLACE = Place("t", 0)


class Noting:
    """A work that notes what it is asked to do."""

    wanted = 10
    holds = True

    def __init__(self, handle: Callable[[], object] = lambda: None) -> None:
        self.seen: list[str] = []
        self._handle = handle

    def begin(self) -> None:
        self.seen.append("begin")

    def handle(self, messages: list[Message]) -> int:
        self.seen.append(f"{len(messages)} messages")
        self._handle()
        return len(messages)

    def rest(self) -> float | None:
        self.seen.append("rest")
        return None

    def end(self) -> None:
        self.seen.append("end")


@pytest.fixture
def pool() -> Iterator[Pool]:
    pool = Pool(2)
    yield pool
    pool.close()


def lane_of(wake: Callable[[], None] = lambda: None) -> AssignedPartition:
    return AssignedPartition(_PLACE, wake, Budget())


def one(offset: int = 1) -> list[Message]:
    return [Message(offset=offset, value=b"x")]


def test_messages_are_handled_between_a_begin_and_an_end(pool: Pool) -> None:
    woken = threading.Event()
    lane, work = lane_of(woken.set), Noting()
    lane.start(work, pool)
    lane.put(one())
    wait_until(lambda: "1 messages" in work.seen, 10, "it is handled")
    lane.stop()
    assert lane.join(10)
    assert [what for what in work.seen if what != "rest"] == [
        "begin",
        "1 messages",
        "end",
    ]
    assert woken.is_set()


def test_an_error_is_kept(pool: Pool) -> None:
    def fail() -> None:
        raise ZeroDivisionError

    lane, work = lane_of(), Noting(fail)
    lane.start(work, pool)
    lane.put(one())
    assert lane.join(10)
    assert isinstance(lane.error, ZeroDivisionError)
    assert work.seen[-1] == "end"


def test_the_wish_to_end_the_process_is_an_error_of_the_lane(pool: Pool) -> None:
    lane, work = lane_of(), Noting(sys.exit)
    lane.start(work, pool)
    lane.put(one())
    assert lane.join(10)
    assert isinstance(lane.error, HandlerFailed)
    assert isinstance(lane.error.__cause__, SystemExit)


def test_a_pause_holds_no_thread_and_goes_on_with_what_is_not_done() -> None:
    pool = Pool(1)
    seen: list[tuple[str, list[int | None]]] = []

    class Pausing(Noting):
        def __init__(self, name: str) -> None:
            super().__init__()
            self._name = name

        def handle(self, messages: list[Message]) -> int:
            seen.append((self._name, [message.offset() for message in messages]))
            if self._name == "a" and len(seen) == 1:
                second.put(one(7))
                raise Pause(2.0, done=1)  # the other one begins meanwhile
            return len(messages)

    first, second = lane_of(), lane_of()
    first.inbox.put([*one(1), *one(2)])
    first.start(Pausing("a"), pool)
    second.start(Pausing("b"), pool)
    wait_until(lambda: len(seen) == 3, 10, "all are handled")
    assert seen == [("a", [1, 2]), ("b", [7]), ("a", [2])]
    for lane in (first, second):
        lane.stop()
        assert lane.join(10)
    pool.close()


def test_what_waits_keeps_nothing_that_others_may_need() -> None:
    """As at a barrier, where it asks again and again."""

    def pause() -> None:
        raise Pause(0)

    lane = lane_of()
    lane.start(Noting(pause), Pool(0))  # turns are the test's
    value = b"x" * 300_000
    assert lane.put([Message(offset=n, value=value) for n in range(20)]) == 20
    for _ in range(8):
        lane.turn()
    assert lane.inbox.shed(700_000) == 2


def test_what_was_handed_out_once_waits_for_no_full_batch() -> None:
    """As after a Retry, at a barrier, and when a batch fails and comes in halves."""
    lane, seen = lane_of(), []

    class Halving(Noting):
        wanted = 3

        def handle(self, messages: list[Message]) -> int:
            seen.append([message.offset() for message in messages])
            if len(seen) == 1:
                raise Pause(0)
            return 1

    lane.linger = Linger(1000, 3)
    lane.start(Halving(), Pool(0))  # turns are the test's
    lane.put([*one(1), *one(2), *one(3)])
    for _ in range(5):
        lane.turn()
    lane.put(one(4))
    after = lane.turn()
    assert seen == [[1, 2, 3], [1, 2, 3], [2, 3], [3]]
    assert after is not None
    assert after.seconds > 900


def test_a_stop_ends_a_pause(pool: Pool) -> None:
    def pause() -> None:
        raise Pause(1000)

    lane, work = lane_of(), Noting(pause)
    lane.start(work, pool)
    lane.put(one())
    wait_until(lambda: "1 messages" in work.seen, 10, "it handles")
    lane.stop()
    assert lane.join(10)
    assert work.seen[-1] == "end"


def test_a_lane_that_holds_nothing_ends_while_all_threads_are_busy() -> None:
    pool, go = Pool(1), threading.Event()
    busy, idle = lane_of(), lane_of()
    handling, resting = Noting(lambda: go.wait(20)), Noting()
    resting.holds = False
    idle.start(resting, pool)
    wait_until(lambda: "rest" in resting.seen, 10, "it rests")
    busy.start(handling, pool)
    busy.put(one())
    wait_until(lambda: "1 messages" in handling.seen, 10, "it handles")
    idle.stop()
    assert idle.ended
    assert not busy.ended
    go.set()
    busy.stop()
    assert busy.join(10)
    pool.close()


def test_a_lane_waits_for_the_former_one_of_its_partition(pool: Pool) -> None:
    go = threading.Event()
    former, work = lane_of(), Noting(lambda: go.wait(20))
    former.start(work, pool)
    former.put(one())
    wait_until(lambda: "1 messages" in work.seen, 10, "it handles")
    former.stop()
    lane, later = lane_of(), Noting()
    lane.start(later, pool, former)
    assert later.seen == []
    go.set()
    wait_until(lambda: later.seen, 10, "the later one begins")
    assert work.seen[-1] == "end"
    lane.stop()
    assert lane.join(10)


def test_a_lane_waits_through_one_that_was_stopped_while_it_waited(pool: Pool) -> None:
    go = threading.Event()
    first, handling = lane_of(), Noting(lambda: go.wait(20))
    first.start(handling, pool)
    first.put(one())
    wait_until(lambda: "1 messages" in handling.seen, 10, "it handles")
    first.stop()
    second, passed_over = lane_of(), Noting()
    second.start(passed_over, pool, first)
    second.stop()
    third, later = lane_of(), Noting()
    third.start(later, pool, second)
    assert not second.join(0.2)
    assert not second.ended
    assert later.seen == []
    go.set()
    wait_until(lambda: later.seen, 10, "the third one begins")
    assert second.join(10)
    assert passed_over.seen == []
    third.stop()
    assert third.join(10)


def test_one_that_seeks_handles_nothing_when_it_is_urged() -> None:
    """A barrier that was run urges all lanes that wait there."""
    lane = lane_of()

    class Seeking(Noting):
        def handle(self, messages: list[Message]) -> int:
            self.seen.append(str([message.offset() for message in messages]))
            if self.seen[-1] == "[1]":
                lane.seek(7)
            return 0

    work = Seeking()
    work.wanted = 1
    lane.start(work, Pool(0))  # turns are the test's
    lane.put([*one(1), *one(2)])
    for _ in range(3):
        lane.turn()
    assert work.seen == ["begin", "[1]"]
    lane.inbox.clear()
    lane.sought()
    lane.put(one(7))
    lane.turn()
    assert work.seen == ["begin", "[1]", "[7]"]


def test_a_seek_drops_what_is_in_hand_and_waits_for_the_fetcher(pool: Pool) -> None:
    lane = lane_of()

    class Seeking(Noting):
        def handle(self, messages: list[Message]) -> int:
            offsets = [message.offset() for message in messages]
            self.seen.append(str(offsets))
            if offsets == [1, 2]:
                lane.seek(7)
                return 1
            return len(messages)

    work = Seeking()
    lane.inbox.put([*one(1), *one(2)])
    lane.start(work, pool)
    wait_until(lambda: lane.wanted_offset == 7, 10, "it asks")
    lane.put(one(3))
    lane.inbox.clear()
    lane.sought()
    lane.put(one(7))
    wait_until(lambda: "[7]" in work.seen, 10, "it goes on")
    assert [what for what in work.seen if what != "rest"] == ["begin", "[1, 2]", "[7]"]
    assert lane.wanted_offset is None
    lane.stop()
    assert lane.join(10)
