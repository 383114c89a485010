"""What is up to a partition's last record is there, if the stream meets that one."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from walstream.errors import Restart
from walstream.kafka.last_record import (
    DeliveredRecords,
    LastRecord,
    TopicTails,
    digest,
)
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table
from walstream.telemetry.meter import SinkMeter

TABLE = Table("public", "t", ("id",), (0,))
COMMIT_MS = (EPOCH_S + 5) * 1000
VALUE = b"value"
LAST = LastRecord(20, 3, COMMIT_MS, exact=True, value=digest(VALUE))


def op(lsn: int, seq_id: int, **fields: Any) -> ReplicationOp:
    made = {"commit_time": 5_000_000, "new": ["1"], **fields}
    return ReplicationOp(Kind.INSERT, TABLE, lsn, seq_id, **made)


class Stream:
    """What one sink leaves out of a topic."""

    def __init__(self, last: Mapping[int, LastRecord]) -> None:
        self.meter = SinkMeter()
        self.disowned = 0
        self.topic = TopicTails("t", last)
        self.delivered = DeliveredRecords("k", self.meter, self._disown)

    def _disown(self) -> None:
        self.disowned += 1

    def has(
        self,
        lsn: int,
        seq_id: int,
        partition: int = 0,
        value: bytes | None = VALUE,
        **fields: Any,
    ) -> bool:
        found = op(lsn, seq_id, **fields)
        return self.delivered.has(self.topic, partition, found, value)


def test_a_record_is_there_up_to_the_last_one_of_its_partition() -> None:
    stream = Stream({0: LAST, 1: replace(LAST, lsn=30)})
    names = [(9, 7), (20, 2), (20, 3), (20, 4), (30, 0), (30, 3), (30, 4)]
    for partition, count in ((0, 3), (2, 0), (1, 6)):
        found = [stream.has(*name, partition) for name in names]
        assert found == [True] * count + [False] * (7 - count)
    assert stream.meter.left_out == 9


def test_a_row_of_a_backfill_is_never_left_out() -> None:
    stream = Stream({0: LAST})
    assert not stream.has(10, 0, snapshot=True)
    assert not stream.has(20, 3, snapshot=True)
    assert not stream.has(20, 7, snapshot=True)
    assert stream.has(20, 2)


@pytest.mark.parametrize(
    ("last", "value", "tombstone"),
    [
        (LAST, True, False),
        (replace(LAST, buried=True), True, True),
        (replace(LAST, value=None, buried=True), False, True),
    ],
)
def test_a_tombstone_is_a_record_of_its_own(
    last: LastRecord, value: bool, tombstone: bool
) -> None:
    stream = Stream({0: last})
    assert stream.has(20, 2, value=None)  # of an earlier name both are there
    assert stream.has(20, 3) is value
    assert stream.has(20, 3, value=None) is tombstone


@pytest.mark.parametrize(
    ("last", "of_it"),
    [
        (LAST, True),
        (replace(LAST, value=digest(b"another")), False),
        (replace(LAST, commit_ms=COMMIT_MS - 1), False),
        (replace(LAST, commit_ms=COMMIT_MS + 1), False),
        (replace(LAST, xid=7), True),
        (replace(LAST, xid=8), False),
        # a record's own time is held where our clock is behind the server's
        (replace(LAST, exact=False), True),
        (replace(LAST, exact=False, value=digest(b"another")), False),
        (replace(LAST, exact=False, commit_ms=COMMIT_MS - 5000), True),
        (replace(LAST, exact=False, commit_ms=COMMIT_MS - 5001), False),
        (replace(LAST, exact=False, commit_ms=COMMIT_MS + 1), False),
        (
            replace(
                LAST, exact=False, commit_ms=COMMIT_MS - 1, value=digest(b"another")
            ),
            False,
        ),
    ],
)
def test_the_last_record_is_of_the_same_transaction(
    last: LastRecord, of_it: bool
) -> None:
    assert last.is_of(op(20, 3, xid=7), VALUE) is of_it
    stream = Stream({0: last})
    if of_it:
        assert stream.has(20, 3, xid=7)
        return
    with pytest.raises(Restart, match=r"of topic 't', partition 0, at \(0/14, 3\)"):
        stream.has(20, 3, xid=7)
    assert stream.disowned == 1


def test_the_time_of_a_commit_counts_to_the_millisecond() -> None:
    assert LAST.is_of(op(20, 3, commit_time=5_000_999), VALUE)
    assert not LAST.is_of(op(20, 3, commit_time=5_001_000), VALUE)


def test_a_tombstone_has_no_value_to_compare() -> None:
    last = replace(LAST, exact=False, value=None, buried=True)
    assert last.is_of(op(20, 3), None)
    assert last.is_of(op(20, 3), VALUE)


def test_the_position_waits_before_what_was_left_out() -> None:
    stream = Stream({0: LAST, 1: replace(LAST, lsn=30)})
    assert stream.delivered.proven(12) == 12
    assert stream.has(12, 0)
    assert stream.has(14, 0, 1)
    assert stream.has(16, 0)
    assert stream.delivered.proven(18) == 12
    assert stream.has(20, 3)
    assert stream.delivered.proven(22) == 14
    assert stream.has(30, 3, 1)
    assert stream.delivered.proven(32) == 32
    assert stream.delivered.proven(40) == 40


def test_the_position_waits_before_an_op_that_came_behind_a_later_one() -> None:
    """Another table of the topic, whose schema's id was not known yet."""
    stream = Stream({0: LAST})
    assert stream.has(15, 0)
    assert stream.has(9, 0)
    assert stream.delivered.proven(18) == 9


def test_what_is_met_at_once_holds_nothing() -> None:
    stream = Stream({0: LAST})
    assert stream.has(20, 3)
    assert stream.delivered.proven(28) == 28
    assert not stream.has(28, 0)


def test_a_last_record_that_is_only_passed_says_nothing() -> None:
    """Nothing was left out by it, so it may be of any history."""
    stream = Stream({0: LAST, 1: LAST})
    assert not stream.has(20, 4)
    assert not stream.has(28, 0, 1)
    assert not stream.topic.tails
    assert stream.delivered.proven(28) == 28
    assert stream.disowned == 0


@pytest.mark.parametrize("partition", [0, 1])
def test_one_that_the_stream_comes_past_is_of_another_history(partition: int) -> None:
    """Whichever partition a later op goes to: it may never come to that one."""
    stream = Stream({0: LAST})
    assert stream.has(20, 2)
    if not partition:
        with pytest.raises(Restart, match="leaves nothing out"):
            stream.has(20, 4)
    else:
        assert not stream.has(20, 4, 1)
        with pytest.raises(Restart, match="leaves nothing out"):
            stream.has(21, 0, 1)
    assert stream.disowned == 1


def test_without_a_later_op_the_position_comes_past_it() -> None:
    stream = Stream({0: LAST})
    assert stream.has(18, 0)
    assert stream.delivered.proven(20) == 18
    with pytest.raises(Restart):
        stream.delivered.proven(21)
    assert stream.disowned == 1


def test_a_stream_that_ends_before_it_does_not_use_it() -> None:
    stream = Stream({0: LAST, 1: replace(LAST, lsn=19), 2: replace(LAST, lsn=21)})
    stream.topic.end_at(20)
    assert [stream.has(18, 0, one) for one in range(3)] == [False, True, False]


def test_no_row_is_in_the_error() -> None:
    stream = Stream({0: replace(LAST, xid=8)})
    with pytest.raises(Restart) as caught:
        stream.has(20, 3, xid=7, value=b"s3cret", new=["s3cret"])
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("ending", "other", "same"),
    [
        (2, b"vxyz", False),
        (2, b"vayz", True),
        (1 << 62, b"another", True),
        (0, b"vabc!", False),
    ],
)
def test_when_a_record_was_made_is_not_compared(
    ending: int, other: bytes, *, same: bool
) -> None:
    last = replace(
        LAST, exact=False, value=digest(b"vabc", ending=ending), ending=ending
    )
    assert last.is_of(op(20, 3), other) is same
