"""Brokers of the topics: those of a sink, or those of the command line."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from walstream.config import Config, KafkaSinkConfig, tls
from walstream.config.reachable_topics import topics_of
from walstream.config.registry import Registry
from walstream.config.tls import Confined
from walstream.errors import ConfigError
from walstream.kafka.producer_config import client_properties

_CLIENT_ID: Final = {"client.id": "walstream-tail"}


@dataclass(frozen=True, slots=True)
class Client:
    properties: Mapping[str, object]  # librdkafka's
    topics: list[str]  # names and patterns of what the sinks can reach
    confined: Confined | None = None
    registry: Registry | None = None  # of records' schemas


def of_brokers(brokers: str) -> Client:
    """Need no configuration."""
    if not brokers.strip():
        raise ConfigError("--brokers is empty", hint="write --brokers HOST:PORT")
    return Client(
        {**client_properties({"bootstrap.servers": brokers}), **_CLIENT_ID}, []
    )


def of_config(config: Config, name: str | None) -> Client:
    """Take the Kafka sink of this name; without one, all must be of one cluster."""
    sinks = {
        each: sink
        for each, sink in config.sinks.items()
        if isinstance(sink, KafkaSinkConfig)
    }
    if not sinks:
        raise ConfigError(
            "the configuration has no Kafka sink",
            hint="name the brokers: --brokers HOST:PORT",
        )
    names = ", ".join(sinks)
    if name is not None and name not in sinks:
        raise ConfigError(f"there is no Kafka sink {name!r}", hint=f"choose: {names}")
    chosen = [name] if name is not None else list(sinks)
    properties = [
        {**_CLIENT_ID, **_connection(sinks[each].producer)} for each in chosen
    ]
    if any(other != properties[0] for other in properties):
        raise ConfigError(
            "there are several Kafka sinks, of several clusters",
            hint=f"choose one of {names} with --sink NAME",
        )
    topics = {
        topic
        for each in chosen
        for topic in topics_of(each, config.sources, config.sinks)
    }
    found = (tls.confined(each, sinks[each]) for each in chosen)
    strictest = next((one for one in found if one is not None), None)
    told = (sinks[each].registry for each in chosen)
    registry = next((one for one in told if one.url), None)
    return Client(properties[0], sorted(topics), strictest, registry)


def _connection(producer: Mapping[str, object]) -> dict[str, object]:
    properties = client_properties(producer)
    if "client.id" not in producer:
        del properties["client.id"]
    return properties
