"""Sinks of a kafka source are not told to write what is written already."""

from collections.abc import Mapping
from typing import Any

import pytest

from walstream.config.relay_rules import check_chains
from walstream.config.sink import DiscardSink, KafkaSinkConfig
from walstream.config.source import KafkaSource


def problems(
    source: Mapping[str, Any] | None = None, *sinks: Mapping[str, Any]
) -> dict[str, str]:
    """Give what is said, by the key's path."""
    names = [f"s{number}" for number in range(len(sinks))]
    servers = {"bootstrap.servers": "localhost:9092"}
    made = KafkaSource.model_validate(
        {
            "kind": "kafka",
            "topics": ["up"],
            "sinks": names,
            "consumer": servers,
            **(source or {}),
        }
    )
    built = {
        name: KafkaSinkConfig.model_validate(
            {"kind": "kafka", "producer": servers, **sink}
        )
        for name, sink in zip(names, sinks, strict=True)
    }
    found = check_chains({"up": made}, built)
    return {".".join(map(str, one.path)): one.complaint for one in found}


def test_what_passes_records_on_is_fine() -> None:
    event = {"format": "event", "topic": "{table}", "topics": {"t": {"name": "x"}}}
    assert problems(None, {}) == {}
    assert problems(None, {"topics": {"s.t": {"name": "x"}}}, {}) == {}
    assert problems(None, event) == {}
    assert problems(None, {"verbose": True}) == {}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("format", "tungsten"),
        ("encoding", "avro"),
        ("key", "concat"),
        ("partitioner", "crc32"),
        ("strict", True),
        ("on_truncate", "skip"),
        ("split_key_updates", False),
        ("on_too_large", "large"),
        ("tombstones", True),
        ("topic_partitions", 3),
        ("on_failure", "drop"),
        ("txinfo", "counts"),
        ("txinfo_max_rows", 5),
        ("batch_rows", 5),
        ("batch_interval", "1s"),
    ],
)
def test_a_sink_that_would_write_otherwise_is_refused(key: str, value: object) -> None:
    found = problems(None, {key: value})
    assert list(found) == [f"sinks.s0.{key}"]
    assert "are relayed as they are" in found[f"sinks.s0.{key}"]


def test_a_partition_key_is_refused() -> None:
    mapped = {"t": {"name": "x", "partition_key": ["a"]}}
    assert list(problems(None, {"topics": mapped})) == [
        "sinks.s0.topics.t.partition_key"
    ]


def test_two_formats_cannot_both_come_in() -> None:
    found = problems(None, {}, {"format": "event", "topic": "{table}"})
    assert "formats event and op" in found["sources.up.sinks"]


def test_a_schema_that_no_event_names_is_refused() -> None:
    found = problems(None, {"format": "event", "topics": {"s.t": {"name": "x"}}})
    assert list(found) == ["sinks.s0.topics.s.t", "sinks.s0.topic"]


def test_poison_does_not_go_where_it_came_from() -> None:
    assert list(problems({"on_poison": "up"}, {})) == ["sources.up.on_poison"]


@pytest.mark.parametrize(
    ("topic", "refused"), [("copy", True), ("all", True), ("aside", False)]
)
def test_poison_does_not_go_among_the_ops(topic: str, refused: bool) -> None:
    sink = {"topic": "all", "topics": {"s.t": {"name": "copy"}}}
    found = problems({"on_poison": topic}, sink)
    assert list(found) == (["sources.up.on_poison"] if refused else [])


def test_a_sink_of_another_kind_is_refused() -> None:
    source = KafkaSource.model_validate(
        {"kind": "kafka", "topics": ["t"], "sinks": ["d"], "consumer": {}}
    )
    sink = DiscardSink(kind="discard")
    (found,) = check_chains({"up": source}, {"d": sink})
    assert "a kafka source feeds kafka sinks" in found.complaint
