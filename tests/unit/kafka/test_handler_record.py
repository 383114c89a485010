"""A record's own time is neither of the future nor before 1970."""

import pytest

from walstream.errors import HistoryError
from walstream.kafka.handler_record import partition_of, told_time
from walstream.kafka.topic import Topic
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table
from walstream.records.partitioner import murmur2
from walstream.records.producer_record import ProducerRecord

_OP = ReplicationOp(Kind.INSERT, Table("public", "t", ()), 8, 3)


def test_a_time_is_kept_within_what_brokers_take() -> None:
    now_ms, epoch_ms = 1_764_000_000_000, EPOCH_S * 1000
    assert told_time(None, 5, now_ms) == 5
    assert told_time(epoch_ms + 7, 5, now_ms) == 7000
    assert told_time(now_ms + 9, 5, now_ms) == (now_ms - epoch_ms) * 1000
    assert told_time(-1, 5, now_ms) == told_time(1, 5, now_ms)


def test_a_record_goes_where_it_says_or_its_key_or_its_table() -> None:
    def last(key: bytes, partitions: int) -> int:
        keys.append(key)
        return partitions - 1

    keys: list[bytes] = []
    wide, narrow = [Topic("orders", "id", count, 1 << 20) for count in (4, 1)]
    assert partition_of(ProducerRecord(b"k", b"", "orders"), _OP, wide, last) == 3
    assert partition_of(ProducerRecord(None, b"", "orders"), _OP, wide, last) == 3
    assert keys == [b"k", b"public.t"]
    assert partition_of(ProducerRecord(b"k", b"", "orders"), _OP, narrow, last) == 0
    told = ProducerRecord(b"k", b"", "orders", partition=2)
    assert partition_of(told, _OP, wide, last) == 2
    assert len(keys) == 2


@pytest.mark.parametrize("partition", [-1, 2])
def test_a_partition_that_is_not_there_is_named(partition: int) -> None:
    record = ProducerRecord(b"k", b"", "orders", partition=partition)
    with pytest.raises(HistoryError) as caught:
        partition_of(record, _OP, Topic("orders", "id", 2, 1 << 20), murmur2)
    for word in ("public.t", "0/8", f"partition {partition}", "'orders'", "has 2"):
        assert word in str(caught.value)
