"""What is read of a topic; tests/integration asks brokers."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from walstream.kafka.topics import Creation, Topics, retention_ms


@pytest.mark.parametrize(
    ("policy", "kept"),
    [("delete", 1000), ("compact,delete", 1000), ("compact", -1), ("", -1)],
)
def test_a_topic_that_is_only_compacted_deletes_nothing_by_age(
    policy: str, kept: int
) -> None:
    assert retention_ms(policy, "1000") == kept


class Admin:
    """Stands for brokers that have every topic but one."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def poll(self, timeout: float) -> None: ...

    def describe_topics(self, topics: Any, **_: float) -> dict[str, "Future[Any]"]:
        self.asked.append(len(topics.topic_names))
        return {name: self._answer(name) for name in topics.topic_names}

    def _answer(self, name: str) -> "Future[Any]":
        answer: Future[Any] = Future()
        if name == "gone":
            error = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART)
            answer.set_exception(KafkaException(error))
        else:
            answer.set_result(SimpleNamespace(topic_id=f"id-{name}", partitions=[0, 1]))
        return answer

    def describe_configs(self, resources: Any, **_: float) -> dict[Any, "Future[Any]"]:
        self.asked.append(len(resources))
        values = {
            "max.message.bytes": "1000",
            "cleanup.policy": "delete",
            "retention.ms": "5",
        }
        config = {key: SimpleNamespace(value=value) for key, value in values.items()}
        asked = {}
        for resource in resources:
            asked[resource] = answer = Future[Any]()
            answer.set_result(config)
        return asked


def test_many_topics_are_described_some_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    admin = Admin()
    monkeypatch.setattr(Topics, "_connected", lambda _: admin)
    topics = Topics({}, Creation(allowed=False), lambda _: None)
    names = [f"t{number}" for number in range(120)]
    found = topics._describe([*names, "gone"])  # noqa: SLF001 - else a broker is needed
    assert sorted(found) == sorted(names)
    assert found["t7"].identity == "id-t7"
    assert {(one.partitions, one.limit) for one in found.values()} == {(2, 1000)}
    assert max(admin.asked) == 50  # 40 KB each is what an answer takes
    assert sum(admin.asked) == 121 + 120
