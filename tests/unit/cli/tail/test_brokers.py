"""Whose brokers are read, and which topics are meant where none is named."""

from typing import Any

import pytest

from walstream.cli.tail.brokers import of_brokers, of_config
from walstream.config import Config
from walstream.errors import ConfigError


def config(**sinks: dict[str, Any]) -> Config:
    source = {
        "kind": "postgres",
        "dsn": "host=/run/postgresql",
        "tables": ["shop.*"],
        "sinks": list(sinks),
    }
    return Config.model_validate({"sources": {"app": source}, "sinks": sinks})


def kafka(servers: str = "localhost:9092", **producer: str) -> dict[str, Any]:
    return {
        "kind": "kafka",
        "producer": {"bootstrap.servers": servers, "linger.ms": "5", **producer},
    }


def test_named_brokers_need_no_more() -> None:
    client = of_brokers("localhost:9092")
    assert client.properties["bootstrap.servers"] == "localhost:9092"
    assert client.properties["client.id"] == "walstream-tail"
    assert client.topics == []
    with pytest.raises(ConfigError, match="--brokers"):
        of_brokers(" ")


def test_sink_lends_its_way_to_the_brokers_and_its_topics() -> None:
    client = of_config(
        config(kafka={**kafka(**{"security.protocol": "ssl"}), "fallback_topic": "f"}),
        None,
    )
    assert client.properties["security.protocol"] == "ssl"
    assert client.properties["client.id"] == "walstream-tail"
    assert "linger.ms" not in client.properties
    assert client.topics == ["f", "shop.*"]


def test_client_id_of_the_operator_stays() -> None:
    client = of_config(config(kafka=kafka(**{"client.id": "mine"})), None)
    assert client.properties["client.id"] == "mine"


def test_sinks_of_one_cluster_are_taken_together() -> None:
    two = config(one=kafka(), two={**kafka(), "topic": "other.{table}"})
    assert of_config(two, None).topics == ["other.*", "shop.*"]
    assert of_config(two, "two").topics == ["other.*"]


def test_sinks_of_several_clusters_have_to_be_chosen_of() -> None:
    two = config(one=kafka(), two=kafka("localhost:9093"))
    with pytest.raises(ConfigError, match="--sink") as raised:
        of_config(two, None)
    assert "one, two" in raised.value.hint
    assert of_config(two, "two").properties["bootstrap.servers"] == "localhost:9093"


def test_sink_that_is_none_is_refused_with_those_that_are() -> None:
    with pytest.raises(ConfigError, match="'three'") as raised:
        of_config(config(one=kafka(), log={"kind": "log"}), "three")
    assert raised.value.hint == "choose: one"
    with pytest.raises(ConfigError, match="no Kafka sink"):
        of_config(config(log={"kind": "log"}), None)
