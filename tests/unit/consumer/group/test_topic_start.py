"""Where members begin that have no state but the group's offsets."""

from collections.abc import Collection

import pytest
from confluent_kafka import Consumer, TopicPartition

from consumer.group.assigned_partition import Place
from consumer.group.settings import FirstOffset
from consumer.group.topic_start import TopicStart
from tests.support.servers.mock_kafka import PARTITIONS, Mocked

TOPIC = "t"
EACH = 3
ALL = [Place(TOPIC, number) for number in range(PARTITIONS)]


@pytest.fixture(scope="module")
def kafka() -> Mocked:
    made = Mocked()
    made.write(TOPIC, EACH)
    return made


def offsets(  # noqa: PLR0913, PLR0917 - what a member knows
    kafka: Mocked,
    group: str,
    begin: FirstOffset,
    places: Collection[Place],
    held: Collection[Place] = ALL,
    stored: dict[Place, int] | None = None,
) -> dict[Place, int]:
    client = {"bootstrap.servers": kafka.bootstrap, "group.id": group}
    consumer = Consumer(client)
    try:
        if stored:
            where = [TopicPartition(*place, at) for place, at in stored.items()]
            consumer.commit(offsets=where, asynchronous=False)
        return TopicStart(begin).offsets(consumer, places, held)
    finally:
        consumer.close()


def known(kafka: Mocked, group: str) -> set[int]:
    client = {"bootstrap.servers": kafka.bootstrap, "group.id": group}
    with Consumer(client) as asking:
        where = [TopicPartition(*place) for place in ALL]
        return {one.offset for one in asking.committed(where, timeout=30)}


@pytest.mark.parametrize(
    ("begin", "first"), [(FirstOffset.EARLIEST, 0), (FirstOffset.LATEST, EACH)]
)
def test_a_topic_is_begun_whole_and_that_is_stored_at_once(
    kafka: Mocked, begin: FirstOffset, first: int
) -> None:
    group = f"whole {begin}"
    assert offsets(kafka, group, begin, ALL[1:2]) == {ALL[1]: first}
    assert known(kafka, group) == {first}


def test_where_the_group_is_it_goes_on(kafka: Mocked) -> None:
    stored = dict.fromkeys(ALL, 2)
    assert offsets(kafka, "on", FirstOffset.LATEST, ALL, stored=stored) == stored


@pytest.mark.parametrize("begin", [FirstOffset.EARLIEST, FirstOffset.LATEST])
def test_a_partition_that_was_added_is_read_from_its_first_record(
    kafka: Mocked, begin: FirstOffset
) -> None:
    group = f"added {begin}"
    found = offsets(kafka, group, begin, ALL[:2], stored={ALL[1]: 2})
    assert found == {ALL[0]: 0, ALL[1]: 2}


def test_who_has_not_partition_0_waits_for_who_has(kafka: Mocked) -> None:
    """No two may begin a topic: the later would set the other's offsets."""
    assert offsets(kafka, "waits", FirstOffset.EARLIEST, ALL[1:], ALL[1:]) == {}
    assert max(known(kafka, "waits")) < 0
    offsets(kafka, "waits", FirstOffset.EARLIEST, ALL[:1], ALL[:1])
    found = offsets(kafka, "waits", FirstOffset.EARLIEST, ALL[1:], ALL[1:])
    assert found == dict.fromkeys(ALL[1:], 0)


def test_who_is_to_begin_nowhere_begins_nothing(kafka: Mocked) -> None:
    found = offsets(kafka, "nowhere", FirstOffset.NOWHERE, ALL, stored={ALL[1]: 2})
    assert found == {ALL[1]: 2}
