"""A member takes partitions and lets them go, beside a group that nobody joins."""

import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.project.own_coverage import ROOT
from tests.support.servers.mock_kafka import PARTITIONS, Mocked
from walstream.errors import HistoryError
from walstream.kafka.group import StoredOffset
from walstream.kafka.group_consumer import GroupConsumer
from walstream.kafka.offsets import Partition
from walstream.kafka.topic_reader import TopicRecord

TOPIC = "up"
EACH = 5


class Who:
    """Who reads; `refusal` stops a topic from being begun."""

    def __init__(self, refusal: HistoryError | None = None) -> None:
        self.refusal = refusal
        self.begun: list[str] = []

    def begins(self, topic: str) -> str:
        if self.refusal is not None:
            raise self.refusal
        self.begun.append(topic)
        return "note"

    def assigned(self, stored: Mapping[Partition, StoredOffset]) -> None: ...

    def revoked(self, places: Collection[Partition]) -> None: ...

    def lost(self, places: Collection[Partition]) -> None: ...


class Moved(GroupConsumer):
    """Partitions come and go as a group would have it, at once."""

    def give(self, *numbers: int) -> None:
        self._assigned(self._consumer, [TopicPartition(TOPIC, one) for one in numbers])

    def take(self, *numbers: int) -> None:
        self._revoked(self._consumer, [TopicPartition(TOPIC, one) for one in numbers])

    def read(self, count: int, for_s: float = 60.0) -> list[TopicRecord]:
        found: list[TopicRecord] = []
        until = time.monotonic() + for_s
        while len(found) < count and time.monotonic() < until:
            found += self.poll(0.05, 100)
        return found


@pytest.fixture(scope="module")
def kafka() -> Mocked:
    made = Mocked()
    made.write(TOPIC, EACH)
    return made


def member(kafka: Mocked, group: str, who: Who | None = None, **given: Any) -> Moved:
    properties = {"bootstrap.servers": kafka.bootstrap, **given}
    return Moved(properties, group, [TOPIC], who or Who())


def stored(kafka: Mocked, group: str) -> list[tuple[int, str | None]]:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    where = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    found = consumer.committed(where, timeout=60)
    consumer.close()
    return [(one.offset, one.metadata) for one in found]


def test_a_partition_that_went_while_paused_is_read_when_it_comes_back(
    kafka: Mocked,
) -> None:
    upstream = member(kafka, "paused")
    upstream.give(0, 1)
    assert len(upstream.read(2 * EACH)) == 2 * EACH
    upstream.pause(paused=True)
    upstream.take(1)
    upstream.pause(paused=False)
    upstream.give(1)
    assert {one.partition for one in upstream.read(EACH)} == {1}
    upstream.close()


def test_a_partition_that_comes_while_paused_waits(kafka: Mocked) -> None:
    upstream = member(kafka, "waits")
    upstream.pause(paused=True)
    upstream.give(0)
    assert not upstream.read(1, for_s=0.5)
    upstream.pause(paused=False)
    assert len(upstream.read(EACH)) == EACH
    upstream.close()


def test_latest_begins_every_partition_of_a_topic_at_its_end(kafka: Mocked) -> None:
    who = Who()
    upstream = member(kafka, "latest", who, **{"auto.offset.reset": "latest"})
    upstream.give(0, 1)
    upstream.give(2, 3)
    assert who.begun == [TOPIC]
    assert stored(kafka, "latest") == [(EACH, "note")] * PARTITIONS
    assert upstream.storing.take_begun() == {TOPIC}
    assert not upstream.read(1, for_s=0.3)
    upstream.close()


def test_latest_begins_an_added_partition_at_its_first_record(kafka: Mocked) -> None:
    who = Who()
    upstream = member(kafka, "added", who, **{"auto.offset.reset": "latest"})
    upstream.store({Partition(TOPIC, 0): (2, "")}, wait=True)
    upstream.give(1)
    assert [one.offset for one in upstream.read(EACH)] == list(range(EACH))
    assert not who.begun
    upstream.close()


@pytest.mark.parametrize("begin", ["earliest", "latest"])
def test_who_refuses_to_begin_a_topic_stops_before_anything_is_stored(
    kafka: Mocked, begin: str
) -> None:
    group = f"refused_{begin}"
    who = Who(HistoryError("its offsets are gone"))
    upstream = member(kafka, group, who, **{"auto.offset.reset": begin})
    upstream.give(0)
    with pytest.raises(HistoryError, match="are gone"):
        upstream.poll(0, 1)
    assert [offset for offset, _ in stored(kafka, group)] == [-1001] * PARTITIONS
    upstream.close()


def test_the_position_is_behind_what_was_given(kafka: Mocked) -> None:
    upstream = member(kafka, "position")
    upstream.give(0)
    place = Partition(TOPIC, 0)
    assert upstream.positions([place]) == {}
    upstream.read(EACH)
    assert upstream.positions([place]) == {place: EACH}
    assert upstream.positions([]) == {}
    upstream.close()


_MEMBER = """
from tests.unit.kafka.test_group_consumer import EACH, PARTITIONS, Mocked, TOPIC, Who
from walstream.kafka.group_consumer import GroupConsumer
kafka, calls, records = Mocked(), [], []
kafka.write(TOPIC, EACH)
callbacks = {"stats_cb": calls.append, "statistics.interval.ms": 5}
given = {"bootstrap.servers": kafka.bootstrap, **callbacks}
upstream = GroupConsumer(given, "callbacks", [TOPIC], Who())
upstream.subscribe()
while len(records) < EACH * PARTITIONS:
    records += upstream.poll(3.0, 100)
upstream.close()
assert calls
print("read")
"""


def test_other_callbacks_may_follow_that_in_which_a_topic_is_begun() -> None:
    """In a process of its own: librdkafka's binding ended it by signal 6."""
    done = subprocess.run(
        [sys.executable, "-c", _MEMBER],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        cwd=ROOT,
    )
    assert (done.returncode, done.stdout[-5:]) == (0, "read\n"), done.stderr
