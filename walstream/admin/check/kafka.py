"""Findings of `check` about a kafka source: errors of `run`, and its waits."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from walstream.config import KafkaSource
from walstream.config.relay_rules import NO_TOPIC
from walstream.errors import Transient
from walstream.finding import Finding, warning
from walstream.kafka.advertised_listeners import BrokersElsewhere
from walstream.kafka.stored_topic import StoredTopic, of_sink
from walstream.kafka.topic_finding import listed
from walstream.status.lookup import kafka


def inspect(name: str, source: KafkaSource, folder: Path) -> Iterator[Finding]:
    """Look at the upstream brokers, topics, and the group, which `folder` knows."""
    subject = f"brokers {source.consumer.get('bootstrap.servers', '')}"
    found = kafka.look(name, source, folder)
    if (error := found.unreachable) is not None:
        code = "upstream-unreachable"
        if isinstance(error, Transient):
            why = "run would wait for them; records stay in their topics meanwhile"
            yield Finding.waits(error, code, subject, why)
        else:
            if isinstance(error, BrokersElsewhere):
                code = "brokers-elsewhere"
            yield Finding.of(error, code, subject)
        return
    if (lost := found.lost) is not None:
        yield Finding.of(lost, "upstream-gap", f"group {source.group}")
    if found.missing:
        yield warning(
            "upstream-topic-missing",
            listed(found.missing),
            "does not exist upstream, or this user may not see it",
            "run would wait for it and relay the others",
        )


def topics(source: KafkaSource, sink: str, kept: Mapping[str, StoredTopic]) -> set[str]:
    """Name the topics of a sink that are known: records alone name the others."""
    found = set(of_sink(kept, sink))
    if source.on_poison not in NO_TOPIC and sink == source.sinks[0]:
        found.add(source.on_poison)
    return found
