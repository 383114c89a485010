"""What outlives a connection to a sink."""

from walstream.kafka.topic_limits import DEFAULT_LIMIT
from walstream.sources.kafka.lasting import Lasting
from walstream.sources.kafka.lease import Leash


def test_limits_grow_both_ways() -> None:
    lasting = Lasting(Leash(10_000))
    lasting.see(DEFAULT_LIMIT + 1)
    lasting.see(10)
    lasting.see(20)
    assert lasting.limits == (10, DEFAULT_LIMIT + 1)


def test_what_was_dropped_before_counts() -> None:
    lasting = Lasting(Leash(10_000), 5)
    assert lasting.drop("a")
    assert not lasting.drop("a")
    assert lasting.drop("b")
    assert lasting.dropped == 8
