"""Topics and forms of messages, by the sink's format."""

import pytest
from pydantic import ValidationError

from walstream.config.messages import Messages
from walstream.config.sink import KafkaSinkConfig


def sink(**told: object) -> KafkaSinkConfig:
    basis = {"kind": "kafka", "producer": {"bootstrap.servers": "localhost:9092"}}
    return KafkaSinkConfig.model_validate({**basis, **told})


def test_the_form_is_that_of_the_format() -> None:
    assert Messages().form_in("op") == "content"
    assert Messages().form_in("debezium_row") == "debezium"
    assert Messages(form="content").form_in("debezium") == "content"


def test_the_topic_is_that_of_the_form_unless_it_is_named() -> None:
    assert Messages().topic_in("op", "app", "n") == "{prefix}"
    assert Messages().topic_in("debezium", "app", "n") == "n.message"
    assert Messages(form="content").topic_in("debezium", "app", "n") == "{prefix}"
    assert Messages(topic="{source}.m.{prefix}").topic_in("op", "app", "n") == (
        "app.m.{prefix}"
    )


def test_asides_are_all_topics_without_ops() -> None:
    found = sink(
        format="debezium",
        txinfo="{source}.transaction",
        messages={"prefixes": ["a.*", "b"], "topic": "m.{prefix}"},
        debezium={"heartbeat": "10s", "name": "shop"},
    )
    assert list(found.asides("app")) == [
        ("txinfo", "app.transaction"),
        ("messages", "m.a.*"),
        ("messages", "m.b"),
        ("debezium", "__debezium-heartbeat.shop"),
    ]
    assert list(sink().asides("app")) == []


@pytest.mark.parametrize("topic", ["{table}", "a b", ".", "x" * 250])
def test_a_topic_is_one_that_kafka_allows(topic: str) -> None:
    with pytest.raises(ValidationError):
        sink(messages={"prefixes": ["a"], "topic": topic})


@pytest.mark.parametrize("pointer", ["id", "/a~2", "/a~"])
def test_a_key_is_a_json_pointer(pointer: str) -> None:
    with pytest.raises(ValidationError):
        sink(messages={"prefixes": ["a"], "key": pointer})
