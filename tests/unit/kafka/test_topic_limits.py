"""What topics and brokers take; tests/integration asks brokers."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.unit.kafka.test_request_limit import Brokers
from walstream.kafka.topic import Topic
from walstream.kafka.topic_limits import TopicLimits, retention_ms


@pytest.mark.parametrize(
    ("policy", "kept"),
    [("delete", 1000), ("compact,delete", 1000), ("compact", -1), ("", -1)],
)
def test_a_topic_that_is_only_compacted_deletes_nothing_by_age(
    policy: str, kept: int
) -> None:
    assert retention_ms(policy, "1000") == kept


class Admin(Brokers):
    """Brokers with topics."""

    def __init__(self, largest: int, *limits: str | None) -> None:
        super().__init__(*limits)
        self._largest = largest

    def describe_configs(self, resources: Any, **named: float) -> dict[Any, Any]:
        if resources[0].restype.name == "BROKER":
            return super().describe_configs(resources, **named)
        values = {
            "max.message.bytes": str(self._largest),
            "cleanup.policy": "delete",
            "retention.ms": "5",
        }
        config = {key: SimpleNamespace(value=value) for key, value in values.items()}
        answer: Future[Any] = Future()
        answer.set_result(config)
        return dict.fromkeys(resources, answer)


@pytest.mark.parametrize(
    ("largest", "limit", "said"),
    [
        (1_000_000, 1_000_000, ""),
        (9_000_000, 2_000_000 - 1024, "socket.request.max.bytes"),
    ],
)
def test_the_smaller_one_counts(largest: int, limit: int, said: str) -> None:
    topic = Topic("t", "id", 1, 7)
    admin = Admin(largest, "3000000", "2000000")
    TopicLimits().read(cast("Any", admin), {"t": topic})
    assert topic.limit == limit
    assert said in topic.advice
    assert bool(topic.advice) is bool(said)
    assert topic.retention_ms == 5


def test_a_topic_that_the_broker_asked_does_not_know_yet_is_taken_out() -> None:
    class Behind(Admin):
        """Brokers, of which one has not heard of the new topic."""

        def describe_configs(self, resources: Any, **named: float) -> dict[Any, Any]:
            answers = super().describe_configs(resources, **named)
            for resource in answers:
                if resource.name == "new":
                    code = KafkaError.UNKNOWN_TOPIC_OR_PART
                    answers[resource] = Future()
                    answers[resource].set_exception(KafkaException(KafkaError(code)))
            return answers

    found = {name: Topic(name, "id", 1, 7) for name in ("new", "old")}
    admin = Behind(1_000_000, "3000000", "2000000")
    TopicLimits().read(cast("Any", admin), found)
    assert {name: topic.limit for name, topic in found.items()} == {"old": 1_000_000}
