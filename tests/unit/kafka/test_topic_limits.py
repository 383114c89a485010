"""What topics and brokers take; tests/integration asks brokers."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.unit.kafka.test_request_limit import Brokers
from walstream.kafka.native_producer import BINDING
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_config import producer_properties
from walstream.kafka.topic import Topic
from walstream.kafka.topic_limits import TopicLimits, retention_ms
from walstream.pipeline.ledger import Counted
from walstream.records.record_size import RECORD_OVERHEAD, Headers


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


@pytest.mark.parametrize(
    ("own", "limit", "said"),
    [
        ("1500000", 1_500_000, "message.max.bytes among the sink's own producer"),
        ("2000000", 2_000_000 - 1024, "socket.request.max.bytes"),
        ("9500000", 2_000_000 - 1024, "socket.request.max.bytes"),
    ],
)
def test_a_producers_own_limit_counts_too(own: str, limit: int, said: str) -> None:
    topic = Topic("t", "id", 1, 7)
    admin = Admin(9_000_000, "3000000", "2000000")
    TopicLimits({"message.max.bytes": own}).read(cast("Any", admin), {"t": topic})
    assert topic.limit == limit
    assert said in topic.advice


@pytest.mark.parametrize("binding", ["", "1"])
def test_a_record_of_a_producers_own_limit_is_taken(
    monkeypatch: pytest.MonkeyPatch, binding: str
) -> None:
    """As walstream counts a record: with the most that is around key and value."""
    monkeypatch.setenv(BINDING, binding)
    given = {"bootstrap.servers": "127.0.0.1:1", "message.max.bytes": 300_000}
    properties = producer_properties({**given, "log_level": 0}, 300_000, 300_000)
    outbox = OrderedProducer("k", properties)
    topic, counted, key = Topic("t", "id", 1, 300_000), Counted(), b"k" * 1000
    value = b"v" * (300_000 - len(key) - RECORD_OVERHEAD)
    headers: Headers = [("walstream-source", b"7" * 120), ("walstream-layout", b"2")]
    outbox.put(topic, value, key, 0, 1, counted, headers)
    assert outbox.serve()
    assert outbox.in_flight
    outbox.close(0)


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
