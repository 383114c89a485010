"""Parts of a handler's record beside key and value: its time and its partition."""

from walstream.errors import HistoryError
from walstream.kafka.topic import Topic
from walstream.lsn import show
from walstream.op import EPOCH_S, ReplicationOp
from walstream.records.partitioner import Partitioner
from walstream.records.producer_record import ProducerRecord


def told_time(timestamp: int | None, commit_time: int, now_ms: int) -> int:
    """Return a record's time as PostgreSQL counts: its own, but not of the future.

    Rows may have any, as what is due next week has; brokers refuse what is ahead. Nor
    is it before 1970: 0 means now to the producer, and others refuse what is below.
    """
    if timestamp is None:
        return commit_time
    told, now = [(ms - EPOCH_S * 1000) * 1000 for ms in (max(timestamp, 1), now_ms)]
    return min(told, max(now, commit_time))


def partition_of(
    record: ProducerRecord, op: ReplicationOp, topic: Topic, partitioner: Partitioner
) -> int:
    """Return the partition that it names, or that of its key; its table's without one.

    Raises HistoryError for one that the topic does not have.
    """
    if record.partition is None:
        if topic.partitions <= 1:
            return 0
        key = op.table.full_name.encode() if record.key is None else record.key
        return partitioner(key, topic.partitions)
    if not 0 <= record.partition < topic.partitions:
        raise _no_such_partition(op, record.partition, topic)
    return record.partition


def _no_such_partition(op: ReplicationOp, partition: int, topic: Topic) -> HistoryError:
    return HistoryError(
        f"a record of table {op.table.full_name!r} at ({show(op.lsn)}, {op.seq_id})"
        f" names partition {partition} of topic {topic.name!r}, which has"
        f" {topic.partitions}",
        hint="add partitions to the topic, or leave out such rows by a filter in front "
        "of the handler; then: walstream run --accept-partitions",
    )
