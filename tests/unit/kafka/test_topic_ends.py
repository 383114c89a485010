"""Where partitions end, from the first on; tests/integration asks brokers."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import OFFSET_INVALID, KafkaError, KafkaException

from walstream.errors import Transient, WalstreamError
from walstream.kafka.offsets import Partition
from walstream.kafka.topic_ends import ends, leaderless


class Brokers:
    """Stands for an admin client; `refuse` is the error of each answer."""

    def __init__(self, refuse: int | None = None, none: str = "") -> None:
        self._refuse = refuse
        self._none = none
        self.refreshed = 0

    def list_topics(self, **_: float) -> None:
        self.refreshed += 1
        raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - theirs

    def list_offsets(self, asked: dict[Any, Any], **_: float) -> dict[Any, Any]:
        assert asked
        return {one: self._answer(one) for one in reversed(asked)}

    def _answer(self, one: Any) -> "Future[Any]":
        answer: Future[Any] = Future()
        if self._refuse is None:
            offset = len(one.topic) * 10 + one.partition
            offset = OFFSET_INVALID if one.topic == self._none else offset
            answer.set_result(SimpleNamespace(offset=offset))
        else:
            answer.set_exception(KafkaException(KafkaError(self._refuse)))
        return answer


def test_each_partition_has_its_place() -> None:
    found = ends(cast("Any", Brokers()), {"a": 3, "bb": 1})
    assert found == {"a": [10, 11, 12], "bb": [20]}
    assert ends(cast("Any", Brokers()), {}) == {}


def test_a_topic_whose_end_is_not_said_is_named() -> None:
    refusing = Brokers(KafkaError.LEADER_NOT_AVAILABLE)
    with pytest.raises(WalstreamError, match="'a'"):
        ends(cast("Any", refusing), {"a": 1})
    assert refusing.refreshed == 1  # for the next question


def test_an_offset_that_no_broker_gave_is_no_end() -> None:
    """So librdkafka has it where a broker stands still, without an error."""
    brokers = cast("Any", Brokers(none="bb"))
    with pytest.raises(Transient, match="does not answer"):
        ends(brokers, {"a": 2, "bb": 1})


def test_partitions_without_a_leader_are_told() -> None:
    def led(*leaders: int) -> SimpleNamespace:
        partitions = {
            number: SimpleNamespace(leader=leader)
            for number, leader in enumerate(leaders)
        }
        return SimpleNamespace(partitions=partitions)

    topics = {"a": led(1, -1, -1), "other": led(-1)}
    admin = cast("Any", Brokers())
    assert leaderless(admin, {"a": 2}) == set()  # no broker answers
    admin.list_topics = lambda **_: SimpleNamespace(topics=topics)
    assert leaderless(admin, {"a": 2, "gone": 1}) == {Partition("a", 1)}
