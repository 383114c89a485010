"""A partition's thread."""

import sys
import threading
from collections.abc import Callable

from confluent_kafka import Message

from consumer.error import HandlerFailed
from consumer.lane import Lane, Place, Stopping
from tests.waiting import wait_until

_PLACE = Place("t", 0)


class Noting:
    """A work that notes what it is asked to do."""

    wanted = 1

    def __init__(self, handle: Callable[[], object] = lambda: None) -> None:
        self.seen: list[str] = []
        self._handle = handle

    def begin(self) -> None:
        self.seen.append("begin")

    def handle(self, messages: list[Message]) -> None:
        self.seen.append(f"{len(messages)} messages")
        self._handle()

    def rest(self) -> None:
        self.seen.append("rest")

    def end(self) -> None:
        self.seen.append("end")


def test_messages_are_handled_between_a_begin_and_an_end() -> None:
    woken = threading.Event()
    lane, work = Lane(_PLACE, woken.set), Noting()
    lane.start(work)
    lane.inbox.put([Message(offset=1, value=b"x")])
    wait_until(lambda: "1 messages" in work.seen, 10, "it is handled")
    lane.stop()
    assert lane.join(10)
    assert [what for what in work.seen if what != "rest"] == [
        "begin",
        "1 messages",
        "end",
    ]
    assert woken.is_set()


def test_an_error_is_kept_and_a_stop_is_none() -> None:
    def fail() -> None:
        raise ZeroDivisionError

    def give_up() -> None:
        raise Stopping

    for handle, error in ((fail, ZeroDivisionError), (give_up, type(None))):
        lane, work = Lane(_PLACE, lambda: None), Noting(handle)
        lane.inbox.put([Message(offset=1, value=b"x")])
        lane.start(work)
        assert lane.join(10)
        assert isinstance(lane.error, error)
        assert work.seen[-1] == "end"


def test_the_wish_to_end_the_process_is_an_error_of_the_lane() -> None:
    lane, work = Lane(_PLACE, lambda: None), Noting(sys.exit)
    lane.inbox.put([Message(offset=1, value=b"x")])
    lane.start(work)
    assert lane.join(10)
    assert isinstance(lane.error, HandlerFailed)
    assert isinstance(lane.error.__cause__, SystemExit)


def test_a_lane_waits_for_the_former_one_of_its_partition() -> None:
    go = threading.Event()
    former, work = Lane(_PLACE, lambda: None), Noting(lambda: go.wait(20))
    former.inbox.put([Message(offset=1, value=b"x")])
    former.start(work)
    wait_until(lambda: "1 messages" in work.seen, 10, "it handles")
    former.stop()
    lane, later = Lane(_PLACE, lambda: None), Noting()
    lane.start(later, former)
    assert later.seen == []
    go.set()
    wait_until(lambda: later.seen, 10, "the later one begins")
    assert work.seen[-1] == "end"
    lane.stop()
    assert lane.join(10)


def test_a_lane_waits_through_one_that_was_stopped_while_it_waited() -> None:
    go = threading.Event()
    first, handling = Lane(_PLACE, lambda: None), Noting(lambda: go.wait(20))
    first.inbox.put([Message(offset=1, value=b"x")])
    first.start(handling)
    wait_until(lambda: "1 messages" in handling.seen, 10, "it handles")
    first.stop()
    second, passed_over = Lane(_PLACE, lambda: None), Noting()
    second.start(passed_over, first)
    second.stop()
    third, later = Lane(_PLACE, lambda: None), Noting()
    third.start(later, second)
    assert not second.join(1.5)
    assert not second.ended
    assert later.seen == []
    go.set()
    wait_until(lambda: later.seen, 10, "the third one begins")
    assert second.join(10)
    assert passed_over.seen == []
    third.stop()
    assert third.join(10)


def test_a_seek_waits_for_the_fetcher() -> None:
    lane = Lane(_PLACE, lambda: None)
    seeking = threading.Thread(target=lane.seek, args=(7,))
    seeking.start()
    wait_until(lambda: lane.wanted_offset == 7, 10, "it asks")
    assert seeking.is_alive()
    lane.sought()
    seeking.join(10)
    assert not seeking.is_alive()
    assert lane.wanted_offset is None
