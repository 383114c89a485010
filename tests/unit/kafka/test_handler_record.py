"""A record's own time is neither of the future nor before 1970."""

from walstream.kafka.handler_record import no_such_partition, told_time
from walstream.kafka.topic import Topic
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table


def test_a_time_is_kept_within_what_brokers_take() -> None:
    now_ms, epoch_ms = 1_764_000_000_000, EPOCH_S * 1000
    assert told_time(None, 5, now_ms) == 5
    assert told_time(epoch_ms + 7, 5, now_ms) == 7000
    assert told_time(now_ms + 9, 5, now_ms) == (now_ms - epoch_ms) * 1000
    assert told_time(-1, 5, now_ms) == told_time(1, 5, now_ms)


def test_a_partition_that_is_not_there_is_named() -> None:
    op = ReplicationOp(Kind.INSERT, Table("public", "t", ()), 8, 3)
    error = no_such_partition(op, 9, Topic("orders", "id", 2, 1 << 20))
    for word in ("public.t", "0/8", "partition 9", "'orders'", "has 2"):
        assert word in str(error)
