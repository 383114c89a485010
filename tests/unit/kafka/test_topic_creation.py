"""How missing topics are created; tests/integration creates some."""

from concurrent.futures import Future
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from walstream.errors import WalstreamError
from walstream.kafka.topic_creation import Creation, create_topics


class Brokers:
    """Stands for an admin client whose brokers answer with these errors, by topic."""

    def __init__(self, **refused: int) -> None:
        self._refused = refused
        self.asked: list[list[str]] = []

    def create_topics(self, new: list[Any], **_: float) -> dict[str, "Future[None]"]:
        self.asked.append([one.topic for one in new])
        return {one.topic: self._answer(one.topic) for one in new}

    def _answer(self, name: str) -> "Future[None]":
        answer: Future[None] = Future()
        if name in self._refused:
            error = KafkaException(KafkaError(self._refused[name]))
            answer.set_exception(error)
        else:
            answer.set_result(None)
        return answer


def create(brokers: Brokers, *names: str) -> list[str]:
    """Return the names that were logged as created."""
    with capture_logs() as logs:
        create_topics(cast("Any", brokers), Creation(allowed=True), [*names])
    return [one["topic"] for one in logs if one["event"] == "topic created"]


def test_what_is_not_said_is_the_brokers_default() -> None:
    asked = Creation(allowed=True).topic("t")
    assert (asked.num_partitions, asked.replication_factor) == (-1, -1)
    asked = Creation(allowed=True, partitions=6, replication=3).topic("t")
    assert (asked.num_partitions, asked.replication_factor) == (6, 3)


def test_one_of_transactions_has_one_partition() -> None:
    creation = Creation(allowed=True, partitions=6, single=frozenset({"told"}))
    names = ("told", "t")
    assert [creation.topic(name).num_partitions for name in names] == [1, 6]


def test_many_are_asked_for_some_at_a_time() -> None:
    brokers = Brokers()
    names = [f"t{number}" for number in range(250)]
    assert create(brokers, *names) == names
    assert [len(part) for part in brokers.asked] == [100, 100, 50]


def test_one_that_somebody_else_created_meanwhile_is_there() -> None:
    brokers = Brokers(a=KafkaError.TOPIC_ALREADY_EXISTS)
    assert create(brokers, "a", "b") == ["b"]


def test_one_that_is_refused_is_named() -> None:
    brokers = Brokers(a=KafkaError.POLICY_VIOLATION)
    with pytest.raises(WalstreamError, match="'a'"):
        create(brokers, "a")


def test_of_a_topic_of_positions_no_reader_is_told() -> None:
    creation = Creation(allowed=True, compacted=frozenset({"told"}))
    assert "its readers" in creation.lost("t", "was deleted").hint
    lost = creation.lost("told", "was deleted")
    assert "its readers" not in lost.hint
    assert "state folder" in lost.hint
