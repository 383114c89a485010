"""Where a member begins, by what its group knows."""

from collections.abc import Collection, Mapping
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.servers.mock_kafka import PARTITIONS, Mocked
from walstream.errors import HistoryError, WalstreamError
from walstream.kafka.group import StoredOffset
from walstream.kafka.group_start import GroupStart
from walstream.kafka.offset_commit import OffsetCommit
from walstream.kafka.offsets import Partition

TOPIC = "up"
EACH = 3
PLACE = Partition(TOPIC, 1)


class Beginner:
    """Keeps a note beside the first offsets of a topic."""

    def __init__(self) -> None:
        self.begun: list[str] = []

    def begins(self, topic: str) -> str:
        self.begun.append(topic)
        return "note"

    def assigned(self, stored: Mapping[Partition, StoredOffset]) -> None: ...

    def revoked(self, places: Collection[Partition]) -> None: ...

    def lost(self, places: Collection[Partition]) -> None: ...


def unstorable(error: WalstreamError) -> None:
    raise error


def start(group: str, who: Beginner | None = None, **given: Any) -> GroupStart:
    storing = OffsetCommit(group, unstorable)
    return GroupStart(given, group, who or Beginner(), storing)


@pytest.fixture(scope="module")
def kafka() -> Mocked:
    made = Mocked()
    made.write(TOPIC, EACH)
    return made


def begun(
    kafka: Mocked, group: str, begin: str, who: Beginner, *numbers: int
) -> dict[Partition, StoredOffset]:
    given = {"bootstrap.servers": kafka.bootstrap, "auto.offset.reset": begin}
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": group})
    try:
        where = [TopicPartition(TOPIC, number) for number in numbers]
        return start(group, who, **given).begun(consumer, where)
    finally:
        consumer.close()


@pytest.mark.parametrize("begin", ["earliest", "latest", "error"])
def test_a_partition_that_the_group_knows_goes_on_there(begin: str) -> None:
    found = start("g", None, **{"auto.offset.reset": begin})
    assert found.first(StoredOffset(0), PLACE) == 0
    assert found.first(StoredOffset(7), PLACE) == 7


@pytest.mark.parametrize("given", [{}, {"auto.offset.reset": "latest"}])
def test_of_a_partition_that_came_later_no_record_is_jumped_over(
    given: dict[str, Any],
) -> None:
    assert start("g", None, **given).first(StoredOffset(None), PLACE) == 0


def test_who_wants_an_error_gets_one_that_names_the_partition() -> None:
    found = start("g", None, **{"auto.offset.reset": "Error"})
    with pytest.raises(HistoryError, match="group 'g' has no offset of topic 'up' par"):
        found.first(StoredOffset(None), PLACE)


def test_nothing_is_asked_of_nobody(kafka: Mocked) -> None:
    who = Beginner()
    assert begun(kafka, "nobody", "latest", who) == {}
    assert who.begun == []


def test_the_latest_are_stored_of_all_partitions_before_one_is_read(
    kafka: Mocked,
) -> None:
    who = Beginner()
    found = begun(kafka, "latest", "latest", who, 1)
    assert found == {PLACE: StoredOffset(EACH, "note")}
    others = [number for number in range(PARTITIONS) if number != PLACE.number]
    found = begun(kafka, "latest", "latest", who, *others)
    assert set(found.values()) == {StoredOffset(EACH, "note")}
    assert who.begun == [TOPIC]  # by the first


def test_the_earliest_are_stored_too_or_nobody_misses_what_is_deleted(
    kafka: Mocked,
) -> None:
    who = Beginner()
    found = begun(kafka, "earliest", "earliest", who, 1)
    assert found == {PLACE: StoredOffset(0, "note")}
    others = [number for number in range(PARTITIONS) if number != PLACE.number]
    found = begun(kafka, "earliest", "earliest", who, *others)
    assert set(found.values()) == {StoredOffset(0, "note")}
    assert who.begun == [TOPIC]


def test_who_wants_an_error_begins_nothing(kafka: Mocked) -> None:
    found = begun(kafka, "error", "error", Beginner(), 1)
    assert found == {PLACE: StoredOffset(None)}


def test_a_topic_that_another_member_began_is_known_to_be_begun(kafka: Mocked) -> None:
    begun(kafka, "others", "earliest", Beginner(), 1)
    storing = OffsetCommit("others", unstorable)
    given = {"bootstrap.servers": kafka.bootstrap}
    consumer = Consumer({**given, "group.id": "others"})
    try:
        where = [TopicPartition(TOPIC, 1)]
        GroupStart(dict(given), "others", Beginner(), storing).begun(consumer, where)
    finally:
        consumer.close()
    assert storing.take_begun() == {TOPIC}
    assert storing.take_begun() == set()
