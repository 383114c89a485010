"""librdkafka properties that would break a promise."""

from typing import Any

import pytest

from walstream.config import KafkaSinkConfig, KafkaSource
from walstream.config.librdkafka import check_sink, check_source, whole_number


def complaints(properties: dict[str, Any] | None = None, **keys: Any) -> dict[str, str]:
    producer = {"bootstrap.servers": "localhost:9092", **(properties or {})}
    sink = KafkaSinkConfig.model_validate(
        {"kind": "kafka", "producer": producer, **keys}
    )
    return {str(p.path[-1]): p.complaint for p in check_sink("k", sink)}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("acks", 1),
        ("request.required.acks", 2),
        ("enable.idempotence", False),
        ("enable.idempotence", "F"),
        ("enable.gapless.guarantee", "false"),
        ("message.timeout.ms", 300000),
        ("delivery.timeout.ms", "1"),
        ("max.in.flight", 6),
        ("max.in.flight.requests.per.connection", "many"),
        ("retries", 3),
        ("message.send.max.retries", 0),
        ("queuing.strategy", "lifo"),
    ],
)
def test_a_broken_promise_is_refused_unless_at_most_once(
    key: str, value: object
) -> None:
    found = complaints({key: value})
    assert list(found) == [key]
    assert "at_most_once = true in sinks.k" in found[key]
    assert complaints({key: value}, at_most_once=True) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("acks", "0"),
        ("request.required.acks", 0),
        ("transactional.id", "x"),
        ("delivery.report.only.error", True),
    ],
)
def test_what_would_never_move_the_position_is_refused_always(
    key: str, value: object
) -> None:
    assert list(complaints({key: value})) == [key]
    assert list(complaints({key: value}, at_most_once=True)) == [key]


def test_properties_that_keep_the_promises_pass() -> None:
    assert not complaints(
        {
            "acks": "All",
            "request.required.acks": -1,
            "enable.idempotence": True,
            "enable.gapless.guarantee": "t",
            "message.timeout.ms": 0,
            "max.in.flight": 5,
            "retries": 2147483647,
            "linger.ms": 50,
            "compression.type": "zstd",
            "statistics.interval.ms": 1000,
        }
    )


@pytest.mark.parametrize(
    "key",
    [
        "error_cb",
        "stats_cb",
        "oauth_cb",
        "on_delivery",
        "logger",
        "debug",
        "key.serializer",
        "partitioner",
        "metadata.broker.list",
    ],
)
def test_what_no_file_can_set_is_refused_always(key: str) -> None:
    assert list(complaints({key: "x"}, at_most_once=True)) == [key]


@pytest.mark.parametrize("servers", ["", " , "])
def test_a_sink_needs_a_broker(servers: str) -> None:
    assert "bootstrap.servers" in complaints({"bootstrap.servers": servers})


def test_a_random_partitioner_breaks_the_order_of_a_key() -> None:
    assert "partitioner" in complaints(partitioner="random")
    assert not complaints(partitioner="random", at_most_once=True)


@pytest.mark.parametrize("key", ["json", "concat", "pkey", "pkeyus"])
def test_consistent_random_keeps_the_order_of_every_key(key: str) -> None:
    assert not complaints(partitioner="consistent_random", key=key)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("enable.auto.commit", True),
        ("enable.auto.offset.store", "true"),
        ("group.id", "x"),
        ("stats_cb", "x"),
        ("value.deserializer", "x"),
    ],
)
def test_a_consumer_that_would_skip_is_refused(key: str, value: object) -> None:
    consumer = {"bootstrap.servers": "localhost:9092", key: value}
    written = {"kind": "kafka", "topics": ["t"], "sinks": ["k"], "consumer": consumer}
    (problem,) = check_source("up", KafkaSource.model_validate(written))
    assert problem.path == ("sources", "up", "consumer", key)


def test_a_number_is_read_as_the_operator_or_walstream_wrote_it() -> None:
    given = {"linger.ms": "7", "batch.size": 9, "acks": "all"}
    assert (whole_number(given, "linger.ms"), whole_number(given, "batch.size")) == (
        7,
        9,
    )
    assert whole_number(given, "retries", 3) == 3
    with pytest.raises(ValueError, match="all"):
        whole_number(given, "acks")
