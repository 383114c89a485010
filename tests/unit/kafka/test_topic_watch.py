"""A topic that is gone is lost where it is in use, and forgotten where it is not."""

from concurrent.futures import Future
from typing import cast

import pytest

from walstream.errors import Restart, TopicLost, Transient, WalstreamError
from walstream.kafka.topic import Topic
from walstream.kafka.topic_watch import TopicWatch
from walstream.kafka.topics import Topics


class Rig:
    """A watch, its topics, and the time."""

    unreachable = False

    def __init__(self) -> None:
        self.now = 0.0
        self.known = {name: Topic(name, name, 1, 1000) for name in "ab"}
        self.idle: list[frozenset[str]] = []
        self.answer: Future[set[str]] = Future()
        self.failed: list[WalstreamError] = []
        self.watch = TopicWatch(cast("Topics", self), lambda: self.now)

    def refresh(self, idle: frozenset[str]) -> "Future[set[str]]":
        self.idle.append(idle)
        return self.answer

    def fail(self, error: WalstreamError) -> None:
        self.failed.append(error)

    def answers(self) -> None: ...

    def look(self) -> set[str] | None:
        return self.watch.look(self)

    def send(self, name: str) -> None:
        self.known[name].timestamp_ms(1, 1)


def test_those_that_nothing_was_sent_to_since_the_last_look_are_idle() -> None:
    rig = Rig()
    rig.send("a")
    for rig.now in (59.0, 60.0):
        assert rig.look() is None
    assert rig.idle == [{"b"}]
    rig.answer.set_result(set())
    assert rig.look() == set()
    rig.send("b")
    rig.now = 120.0
    rig.look()
    assert rig.idle == [{"b"}, {"a"}]


def test_one_that_is_there_again_after_it_was_forgotten_begins_anew() -> None:
    rig = Rig()
    rig.now = 60.0
    rig.look()
    rig.answer.set_result({"a"})
    assert rig.look() == {"a"}
    assert not rig.failed
    rig.watch.meet("b")
    with pytest.raises(Restart, match="'a'"):
        rig.watch.meet("a")


def test_one_that_was_sent_to_while_it_was_looked_for_is_lost() -> None:
    rig = Rig()
    rig.now = 60.0
    rig.look()
    rig.send("a")
    rig.answer.set_result({"a"})
    rig.look()
    (error,) = rig.failed
    assert isinstance(error, TopicLost)


@pytest.mark.parametrize(("error", "fails"), [(TopicLost("x"), 1), (Transient("x"), 0)])
def test_what_is_lost_stops_and_what_passes_does_not(
    error: WalstreamError, fails: int
) -> None:
    rig = Rig()
    rig.now = 60.0
    rig.look()
    rig.answer.set_exception(error)
    assert rig.look() == set()
    assert len(rig.failed) == fails


def test_partitions_are_proven_again_before_brokers_forget_the_producer() -> None:
    rig = Rig()
    for one in rig.known.values():
        one.unproven.clear()
    rig.now = 6 * 3600.0 - 60.0
    rig.look()
    assert [one.unproven for one in rig.known.values()] == [set(), set()]
    rig.answer.set_result(set())
    rig.look()
    rig.now = 6 * 3600.0
    rig.look()
    assert [one.unproven for one in rig.known.values()] == [{0}, {0}]
