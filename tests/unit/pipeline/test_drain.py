"""Ends of a drain: at its deadline, or once people are waited for."""

from typing import Any, cast

import pytest

from walstream.pipeline.drain import Drain
from walstream.pipeline.outage import Outage
from walstream.pipeline.shutdown import Stop, Waker
from walstream.telemetry import runtime

AWAY = Outage("away", of="the schema registry")


class Sink:
    """A sink that waits as it is told."""

    outage: Outage | None = None


class Fanout:
    """Sinks, and a count of what is left."""

    def __init__(self) -> None:
        self.sink = Sink()
        self.sinks = [object(), self.sink]
        self.undelivered = 3


class Watched:
    """A drain under a clock of the test's."""

    def __init__(self, timeout_s: float = 1e6) -> None:
        self.now = 100.0
        self.fanout = cast("Any", Fanout())
        self.stop = Stop(Waker(), timeout_s)
        self.drain = Drain(self.stop, self.fanout)

    def over(self, after_s: float) -> bool:
        """Look again after some time."""
        self.now += after_s
        return self.drain.over


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> Watched:
    made = Watched()
    monkeypatch.setattr(runtime, "monotonic", lambda: made.now)
    made.stop.request()
    return made


def test_what_is_under_way_is_waited_for_up_to_the_deadline(watched: Watched) -> None:
    assert [watched.over(after) for after in (0.0, 60.0, 60.0)] == [False] * 3
    assert watched.over(1e6)


def test_brokers_are_waited_for(watched: Watched) -> None:
    watched.fanout.sink.outage = Outage("away")
    assert [watched.over(after) for after in (0.0, 60.0, 60.0)] == [False] * 3


def test_a_registry_is_not(watched: Watched) -> None:
    watched.fanout.sink.outage = AWAY
    assert not watched.over(0.0)
    assert not watched.over(1.5)
    watched.fanout.undelivered = 2  # others still deliver
    assert not watched.over(1.0)
    assert not watched.over(1.5)
    assert watched.over(1.0)


def test_a_registry_that_answers_is_waited_for(watched: Watched) -> None:
    watched.fanout.sink.outage = AWAY
    assert not watched.over(0.0)
    watched.fanout.sink.outage = None
    assert not watched.over(1.5)
    watched.fanout.sink.outage = AWAY
    assert not watched.over(1.5)


def test_an_end_at_an_lsn_waits_for_all(watched: Watched) -> None:
    watched.drain = Drain(Stop(Waker(), 1.0), watched.fanout)
    watched.fanout.sink.outage = AWAY
    assert [watched.over(after) for after in (0.0, 60.0)] == [False] * 2
