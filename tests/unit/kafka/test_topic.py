"""What a sink knows of a topic while it writes to it."""

import pickle
import time
from itertools import pairwise

import pytest

from walstream.kafka.last_record import (
    DeliveredRecords,
    LastRecord,
    TopicTails,
    digest,
)
from walstream.kafka.topic import Topic
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table
from walstream.telemetry.meter import SinkMeter

NOW_MS = (EPOCH_S + 1_000_000) * 1000
HOUR_MS = 3_600_000
TABLE = Table("public", "t", ("id",), (0,))


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


def test_it_knows_under_which_limit_records_were_sent() -> None:
    topic = Topic("t", "id", 2, 1000)
    assert topic.has_narrowed(999)
    assert not topic.has_narrowed(1000)
    for limit in (3000, 500):
        topic.take_in(Topic("t", "id", 2, limit, 5, "advice"))
        assert (topic.limit, topic.retention_ms, topic.advice) == (limit, 5, "advice")
    assert topic.has_narrowed(500), "what was sent before may be on its way"
    assert not topic.has_narrowed(3000)


def test_what_fits_another_limit_may_be_parked_and_no_tail_is_met() -> None:
    kept = []
    for limit in (1000, 3000):
        topic = Topic("t", "id", 2, 1000)
        topic.tails = TopicTails("t", {})
        topic.take_in(Topic("t", "id", 2, limit))
        kept.append(topic.tails is not None)
    assert kept == [True, False]


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


SOURCE = ("walstream-source", b"1/db/0")
ERA = ("walstream-era", b"rules")


def test_the_first_record_of_each_partition_tells_the_era() -> None:
    topic = Topic("t", "id", 2, 1000)
    topic.lay_out(2)
    topic.tell_era("rules")
    layout = ("walstream-layout", b"2")
    assert topic.headers(1, [SOURCE]) == [SOURCE, ERA, layout]
    assert topic.headers(0, [SOURCE]) == [SOURCE, ERA, layout]
    assert topic.headers(1, [SOURCE]) == [layout]


def test_the_era_is_told_again_in_each_partition() -> None:
    """The newest one has to lie within 8192 offsets of the end."""
    topic = Topic("t", "id", 2, 1000)
    topic.tell_era("rules")
    told: dict[int, list[int]] = {0: [], 1: []}
    for number in range(10_000):
        partition = number % 2
        if topic.headers(partition, [SOURCE]) is not None:
            told[partition].append(number // 2)
    for numbers in told.values():
        assert len(numbers) == 5
        gaps = {later - one for one, later in pairwise(numbers)}
        assert all(900 < gap < 1100 for gap in gaps)


def test_without_an_era_headers_are_told_once() -> None:
    topic = Topic("t", "id", 1, 1000)
    told = [topic.headers(0, [SOURCE]) for _ in range(5000)]
    assert told == [[SOURCE]] + [None] * 4999


def insert(lsn: int, seq_id: int = 0) -> ReplicationOp:
    return ReplicationOp(Kind.INSERT, TABLE, lsn, seq_id, new=["1"], commit_time=0)


def test_what_it_has_is_left_out_until_a_later_op_comes() -> None:
    topic, meter = Topic("t", "id", 2, 1000), SinkMeter()
    delivered = DeliveredRecords("k", meter)
    assert not topic.has(delivered, 0, insert(8), b"v")
    last = LastRecord(8, 1, EPOCH_S * 1000, exact=True, value=digest(b"v"))
    topic.tails = tails = TopicTails("t", {0: last})
    assert topic.has(delivered, 0, insert(8), b"v")
    assert not topic.has(delivered, 1, insert(8), b"v")
    assert topic.has(delivered, 0, insert(8, 1), b"v")
    assert topic.tails is tails
    assert not topic.has(delivered, 0, insert(9), b"v")
    assert topic.tails is not tails  # nothing is looked up for what follows
    assert meter.left_out == 2


def test_what_lies_behind_the_end_of_a_stream_is_forgotten() -> None:
    topic = Topic("t", "id", 2, 1000)
    topic.end_tails(9)
    assert topic.tails is None
    tails = [
        LastRecord(lsn, 0, EPOCH_S * 1000, exact=True, value=digest(b"v"))
        for lsn in (8, 9)
    ]
    topic.tails = TopicTails("t", dict(enumerate(tails)))
    topic.end_tails(9)
    delivered = DeliveredRecords("k", SinkMeter())
    assert topic.has(delivered, 0, insert(8), b"v")
    assert not topic.has(delivered, 1, insert(8), b"v")
