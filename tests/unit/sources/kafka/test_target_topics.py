"""Targets are looked at again; what makes them unusable is seen with real brokers."""

from concurrent.futures import Future
from types import SimpleNamespace
from typing import Any, cast

import pytest

from walstream.config import KafkaSinkConfig
from walstream.kafka.topic import Topic
from walstream.sources.kafka.target_topics import ANY, TargetTopics
from walstream.telemetry import runtime


def test_partitions_are_proven_again_before_brokers_forget_the_producer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(runtime, "monotonic", lambda: now[0])
    targets = TargetTopics(
        "k", cast("KafkaSinkConfig", None), cast("Any", SimpleNamespace())
    )
    topic = Topic("t", "t", 2, 1 << 20)
    topic.unproven.clear()
    found = SimpleNamespace(known={"t": topic}, refresh=Future)
    targets._by_partitions[ANY] = cast("Any", found)  # noqa: SLF001 - no Kafka
    seen = []
    for now[0] in (1061.0, 22500.0, 22700.0, 22800.0):
        targets.look(cast("Any", pytest.fail))
        seen.append(set(topic.unproven))
        topic.unproven.clear()
    assert seen == [set(), set(), {0, 1}, set()]
