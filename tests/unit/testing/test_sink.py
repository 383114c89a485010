"""A Kafka in memory keeps one order a partition, and delivers as it is told."""

import pytest

from walstream.errors import Transient
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.ports import Sink
from walstream.testing import Delivery, MemorySink

TABLE = Table("public", "t", ("id",), key=(0,))


def insert(seq_id: int) -> ReplicationOp:
    return ReplicationOp(Kind.INSERT, TABLE, 7, seq_id, new=[str(seq_id)])


def test_it_is_what_the_pipeline_asks_for() -> None:
    def asks(sink: Sink) -> bool:
        return sink.ready() and not sink.in_flight

    assert asks(MemorySink())


def test_record_is_delivered_at_once_and_counted() -> None:
    sink, transaction = MemorySink(), Transaction(7)
    assert sink.send(insert(0), transaction)
    assert transaction.undelivered == 0
    assert [record.name for record in sink.delivered] == [(7, 0)]
    assert sink.sent[0].topic == "public.t"
    assert sink.sent[0].key == b'["0"]'


def test_delivery_on_command_keeps_the_order_of_a_partition() -> None:
    sink = MemorySink(partitions=2, delivery=Delivery.ON_COMMAND)
    transaction = Transaction(7)
    for seq_id in range(8):
        sink.send(insert(seq_id), transaction)
    assert transaction.undelivered == sink.in_flight == 8
    assert set(sink.waiting) == {0, 1}
    assert sink.deliver(1).partition == 1
    sink.deliver_all()
    assert transaction.undelivered == 0
    for partition in (0, 1):
        numbers = [r.seq_id for r in sink.delivered if r.partition == partition]
        assert numbers == sorted(numbers)


def test_full_queue_takes_the_op_and_no_other() -> None:
    sink = MemorySink(delivery=Delivery.ON_COMMAND, limit=2)
    transaction = Transaction(7)
    assert sink.send(insert(0), transaction)
    assert not sink.send(insert(1), transaction)
    assert not sink.ready()
    sink.deliver(0)
    assert sink.ready()


def test_refused_room_comes_back() -> None:
    sink = MemorySink()
    sink.refuse()
    assert not sink.ready()
    assert not sink.send(insert(0), Transaction(7))
    sink.release()
    assert sink.ready()


def test_failed_delivery_is_raised_by_ready_for_good() -> None:
    sink = MemorySink()
    sink.fail(Transient("lost"))
    for _ in range(2):
        with pytest.raises(Transient):
            sink.ready()


def test_key_change_is_two_records_and_truncate_one_a_partition() -> None:
    sink, transaction = MemorySink(partitions=3), Transaction(7)
    moved = ReplicationOp(Kind.UPDATE, TABLE, 7, 0, ["1"], ["2"], key_changed=True)
    sink.send(moved, transaction)
    sink.send(ReplicationOp(Kind.TRUNCATE, TABLE, 7, 2), transaction)
    assert [record.seq_id for record in sink.sent] == [0, 1, 2, 2, 2]
    assert [record.partition for record in sink.sent[2:]] == [0, 1, 2]
    assert all(b'"partitions":3' in record.value for record in sink.sent[2:])
    assert {record.key for record in sink.sent[2:]} == {b'["public.t"]'}


def test_closed_sink_reports_no_delivery() -> None:
    sink = MemorySink(delivery=Delivery.ON_COMMAND)
    transaction = Transaction(7)
    sink.send(insert(0), transaction)
    sink.close()
    assert sink.closed
    assert (transaction.undelivered, sink.in_flight) == (1, 0)
