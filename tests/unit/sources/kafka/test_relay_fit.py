"""Producers of a relay have room for the largest record, each of those that share."""

import pytest

from walstream.errors import Restart
from walstream.kafka.producer_config import queue_within, room_of
from walstream.kafka.topic import Topic
from walstream.kafka.topic_limits import DEFAULT_LIMIT
from walstream.sources.kafka.lease import PartitionLease
from walstream.sources.kafka.metrics import Lasting
from walstream.sources.kafka.relay_fit import RelayFit

MIB = 1 << 20
QUEUE = queue_within(32 * MIB, 1)  # by default


def topic(limit: int) -> Topic:
    return Topic("t", "t", 1, limit)


@pytest.mark.parametrize("parts", [1, 8])
@pytest.mark.parametrize("limit", [10 * MIB, 100 * MIB])
def test_a_queue_has_room_for_the_largest_record(parts: int, limit: int) -> None:
    lasting = Lasting(PartitionLease(45_000))
    first = RelayFit(lasting)
    room = room_of(first.properties(QUEUE, parts))
    assert room == first.largest
    if limit <= room:
        first.check(topic(limit))
    else:
        with pytest.raises(Restart):
            first.check(topic(limit))
    again = RelayFit(lasting)
    assert room_of(again.properties(QUEUE, parts)) >= limit
    again.check(topic(limit))


def test_batches_fit_the_smallest_topic() -> None:
    lasting = Lasting(PartitionLease(45_000))
    fit = RelayFit(lasting)
    assert fit.properties(QUEUE, 8)["batch.size"] == 1_000_000
    fit.check(topic(DEFAULT_LIMIT))
    with pytest.raises(Restart):
        fit.check(topic(200_000))
    assert RelayFit(lasting).properties(QUEUE, 8)["batch.size"] == 200_000


def test_what_is_met_before_there_is_a_producer_is_built_for() -> None:
    fit = RelayFit(Lasting(PartitionLease(45_000)))
    fit.check(topic(100 * MIB))
    assert room_of(fit.properties(QUEUE, 8)) >= 100 * MIB
