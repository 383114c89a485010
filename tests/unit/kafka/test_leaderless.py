"""Records wait for a partition that could not be looked at."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.support.runtime import altered
from walstream.errors import Restart
from walstream.kafka.leaderless import LeaderlessPartitions
from walstream.kafka.offsets import Partition


class Brokers:
    leader: int | None = None
    asked = 0
    slept = 0.0

    def list_topics(self, topic: str, timeout: float) -> Any:
        assert timeout
        self.asked += 1
        if self.leader is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))  # noqa: SLF001 - theirs
        partition = SimpleNamespace(leader=self.leader)
        return SimpleNamespace(topics={topic: SimpleNamespace(partitions=[partition])})

    def sleep(self, wait_s: float) -> None:
        self.slept += wait_s


def at_once(call: Any) -> "Future[bool]":
    done: Future[bool] = Future()
    done.set_result(call())
    return done


def test_a_record_waits_for_a_leader_and_for_the_next_start() -> None:
    brokers = Brokers()
    waited = LeaderlessPartitions([Partition("t", 0)], brokers, at_once)
    assert waited
    with altered(sleep=brokers.sleep):
        assert not waited.has("t", 1)
        assert not waited.has("other", 0)
        assert not brokers.asked
        for leader in (None, -1):
            brokers.leader = leader
            for _ in range(4):
                assert waited.has("t", 0)
        assert brokers.slept == brokers.asked / 2
        brokers.leader = 1
        assert waited.has("t", 0)
        with pytest.raises(Restart, match="has a leader again"):
            waited.has("t", 0)
        assert not waited.has("t", 1)


def test_none_is_asked_twice_at_a_time() -> None:
    asked: list[Any] = []

    def later(call: Any) -> "Future[bool]":
        asked.append(call)
        return Future()

    waited = LeaderlessPartitions([Partition("t", 0)], Brokers(), later)
    for _ in range(3):
        assert waited.has("t", 0)
    assert len(asked) == 1
    assert not LeaderlessPartitions((), Brokers(), later)
