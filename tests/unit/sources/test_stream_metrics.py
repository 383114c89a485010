"""Lag is true, also when idle; what the slot holds is compared with the limit."""

from collections import Counter

import pytest

from walstream.lsn import Lsn
from walstream.postgres.slot_health import (
    Alarm,
    SlotHealth,
)
from walstream.sources.figures import StreamFigures
from walstream.sources.stream_metrics import StreamMetrics
from walstream.telemetry.tally import Tally

_EPOCH = 946_684_800


class Stream:
    """A pipeline and a source, as far as a gauge looks at them."""

    def __init__(self) -> None:
        self.received: Lsn = 0
        self.asked = 0
        self.confirmed: Lsn = 0
        self.ops_read = 0
        self.delivered_ops = 0
        self.oldest_commit_time: int | None = None
        self.sinks: list[object] = []
        self.fanout = self

    def ask(self) -> None:
        self.asked += 1


def health(retained: int = 0, flush: Lsn = 1000) -> SlotHealth:
    return SlotHealth(retained, "reserved", None, flush)


def gauge(kept: StreamFigures | None = None, limit: int = 100) -> StreamMetrics:
    return StreamMetrics(Alarm("s", limit, lambda: 0.0), kept)


def attached(stream: Stream, kept: StreamFigures | None = None) -> StreamMetrics:
    made = gauge(kept)
    made.attach(stream, stream)  # type: ignore[arg-type]  # what it looks at
    return made


def test_nothing_is_known_before_the_server_was_asked() -> None:
    assert attached(Stream()).lag_s(50.0) is None


def test_an_idle_stream_that_has_all_lags_by_nothing() -> None:
    stream = Stream()
    found = attached(stream)
    found.see(health(flush=1000))
    assert stream.asked == 1  # so that an idle server says soon how far it is
    stream.received = 1000
    assert found.lag_s(50.0) == 0
    found.see(health(flush=5000))  # the server wrote, nothing came yet
    assert found.lag_s(53.0) == 3.0
    stream.received = 5000
    assert found.lag_s(54.0) == 0


def test_what_is_under_way_lags_by_its_age() -> None:
    stream = Stream()
    found = attached(stream)
    found.see(health())
    stream.received = 1000
    stream.oldest_commit_time = 40_000_000
    assert found.lag_s(_EPOCH + 47.5) == 7.5


def test_figures_go_on_over_streams_and_restarts() -> None:
    stream = Stream()
    found = attached(stream, StreamFigures(ops=10, delivered=9, current_at=5.0))
    stream.ops_read, stream.delivered_ops = 3, 2
    assert (found.ops, found.delivered) == (13, 11)
    found.detach()
    found.attach(Stream(), Stream())  # type: ignore[arg-type]
    assert (found.ops, found.delivered) == (13, 11)
    kept = found.kept()
    assert (kept.ops, kept.delivered, kept.current_at) == (13, 11, 5.0)
    assert found.lag_s(8.0) == 3.0


@pytest.mark.parametrize(("held", "red"), [(100, False), (101, True)])
def test_the_alarm_is_for_more_than_the_limit(held: int, red: bool) -> None:
    found = gauge(limit=100)
    found.see(health(held))
    assert bool(found.report().alarm) is red


def test_a_slot_that_is_gone_holds_nothing() -> None:
    found = gauge(limit=100)
    found.see(health(500))
    found.see(None)
    assert found.report().alarm == ""
    assert found.report().retained_wal is None


def test_a_heartbeat_that_did_not_come_yet_is_a_lag() -> None:
    stream = Stream()
    found = attached(stream)
    found.beat(900)
    assert stream.asked == 1
    stream.received = 900
    assert found.lag_s(50.0) == 0  # known before the slot was looked at
    found.see(health(flush=800))
    found.beat(2000)
    assert found.lag_s(53.0) == 3.0
    stream.received = 2000
    assert found.lag_s(54.0) == 0


def test_counters_are_those_of_this_process() -> None:
    found = gauge(StreamFigures(sinks={"kafka": {"t": {"dropped": 9}}}))
    found.meter.sink("kafka")
    found.tallies.add("kafka", Tally(dropped=Counter(t=2)))
    assert found.counts().sinks["kafka"].dropped == {"t": 2}
