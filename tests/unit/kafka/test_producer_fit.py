"""Producers are built for the sizes that topics take, and anew where those change."""

from typing import Any

import pytest

from tests.support.servers.mock_kafka import shared_kafka
from walstream.errors import Restart
from walstream.kafka.producer_fit import ProducerFit, _topic
from walstream.kafka.topic import Topic
from walstream.telemetry.meter import SinkMeter

MIB = 1 << 20


def fitted(limits: tuple[int, int], **given: Any) -> ProducerFit:
    fit = ProducerFit("k", SinkMeter(), {**shared_kafka(), **given})
    fit.open([], limits).close()
    return fit


def test_a_smaller_topic_needs_smaller_batches() -> None:
    fit = fitted((MIB, MIB))
    fit.check((MIB, MIB))
    with pytest.raises(Restart, match=r"max\.message\.bytes"):
        fit.check((MIB - 1, MIB))


def test_a_larger_topic_needs_no_more_than_a_queue_that_holds_its_record() -> None:
    fit = fitted((MIB, MIB), **{"queue.buffering.max.kbytes": 4096})
    fit.check((MIB, 4 * MIB))
    with pytest.raises(Restart):
        fit.check((MIB, 4 * MIB + 1))
    fitted((MIB, 8 * MIB), **{"queue.buffering.max.kbytes": 4096}).check((MIB, 8 * MIB))


def test_many_topics_share_several_producers() -> None:
    fit = ProducerFit("k", SinkMeter(), shared_kafka())
    made = fit.open([f"t{number}" for number in range(201)], (MIB, MIB))
    assert made.of("t0") is not made.of("t1")
    assert made.of("t0") is made.of("t0")
    made.close()


def test_a_topic_of_positions_that_is_gone_is_no_defect() -> None:
    """It is forgotten as any other is, where nothing was written to it lately."""
    known = {"told": Topic("told", identity="1", partitions=1, limit=MIB)}
    assert _topic(lambda: known, "told") is known["told"]
    with pytest.raises(Restart, match="'told' of positions was deleted"):
        _topic(dict, "told")
