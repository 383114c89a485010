"""What a sink knows of a topic while it writes to it."""

import pickle
import time

import pytest

from walstream.kafka.topic import Topic
from walstream.op import EPOCH_S

NOW_MS = (EPOCH_S + 1_000_000) * 1000
HOUR_MS = 3_600_000


@pytest.mark.parametrize(
    ("retention_ms", "ago_ms", "expected_ago_ms"),
    [
        (-1, 500, 500),
        (-1, -500, -500),  # committed since that clock was read
        (HOUR_MS, HOUR_MS // 4, HOUR_MS // 4),
        (HOUR_MS, HOUR_MS * 2, HOUR_MS // 2),  # else Kafka deletes it at once
    ],
)
def test_commit_times_are_held_where_kafka_keeps_records(
    retention_ms: int, ago_ms: int, expected_ago_ms: int
) -> None:
    topic = Topic("t", "id", 2, 1000, retention_ms)
    commit_time = (NOW_MS - ago_ms - EPOCH_S * 1000) * 1000
    for _ in range(2):
        assert topic.timestamp_ms(commit_time, NOW_MS) == NOW_MS - expected_ago_ms


def test_a_server_whose_clock_is_ahead_does_not_write_into_the_future() -> None:
    before_ms = int(time.time() * 1000)
    commit_time = (before_ms + HOUR_MS - EPOCH_S * 1000) * 1000
    found_ms = Topic("t", "id", 2, 1000).timestamp_ms(commit_time, before_ms)
    assert before_ms <= found_ms <= int(time.time() * 1000)


def test_each_partition_begins_once() -> None:
    topic = Topic("t", "id", 2, 1000)
    assert [topic.begins(p) for p in (0, 1, 0, 1)] == [True, True, False, False]


def test_records_tell_the_layout_from_the_second_on() -> None:
    topic, source = Topic("t", "id", 2, 1000), ("walstream-source", b"1/db/0")
    assert [topic.headers(0, [source]) for _ in range(2)] == [[source], None]
    topic.lay_out(1)
    assert [topic.headers(1, [source]) for _ in range(2)] == [[source], None]
    topic.lay_out(2)
    there = pickle.loads(pickle.dumps(topic))  # noqa: S301 - our own
    layout = ("walstream-layout", b"2")
    assert topic.headers(1, [source]) == [layout]
    assert there.headers(0, [source]) == [source, layout]


def test_it_goes_to_other_processes_as_it_was_found() -> None:
    topic = Topic("t", "id", 2, 1000, HOUR_MS)
    assert topic.begins(0)
    there = pickle.loads(pickle.dumps(topic))  # noqa: S301 - our own
    found = there.name, there.identity, there.partitions, there.limit
    assert (*found, there.retention_ms) == ("t", "id", 2, 1000, HOUR_MS)
    # its producer is another
    assert there.begins(0)


@pytest.mark.parametrize(
    ("behind_ms", "expected_behind_ms"),
    [
        (HOUR_MS // 8, HOUR_MS // 8),
        (HOUR_MS // 2, 0),  # else Kafka deletes it before its time
        (24 * HOUR_MS, 0),
    ],
)
def test_a_clock_that_is_behind_does_not_make_kafka_delete(
    behind_ms: int, expected_behind_ms: int
) -> None:
    now_ms = int(time.time() * 1000) + 1000
    committed_ms = now_ms + behind_ms
    commit_time = (committed_ms - EPOCH_S * 1000) * 1000
    found_ms = Topic("t", "id", 2, 1000, HOUR_MS).timestamp_ms(commit_time, now_ms)
    assert committed_ms - expected_behind_ms == pytest.approx(found_ms, abs=60_000)


def test_it_tells_once_that_records_were_sent_to_it() -> None:
    topic = Topic("t", "id", 2, 1000)
    assert not topic.was_stamped()
    for commit_time in (7, 7, -1):
        stamp = topic.timestamp_ms(commit_time, NOW_MS)
        assert topic.was_stamped()
        assert not topic.was_stamped()
        assert topic.timestamp_ms(commit_time, NOW_MS) == stamp
        topic.was_stamped()


def test_it_tells_once_that_another_producer_wrote() -> None:
    topic = Topic("t", "id", 2, 1000)
    topic.written()
    assert topic.was_stamped()
    assert not topic.was_stamped()
    topic.written()
    assert topic.timestamp_ms(0, NOW_MS) == EPOCH_S * 1000
