"""A sink's transactions: how long the delivered ones took, and what it has seen."""

from tests.support.runtime import altered
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.answer_time import AnswerTime
from walstream.pipeline.attached_sink import AttachedSink
from walstream.telemetry.meter import Meter, SinkMeter
from walstream.testing import Delivery, MemorySink

TABLE = Table("public", "t", ("id",), key=(0,))


def test_how_long_a_delivery_took_is_noted_of_ops_alone() -> None:
    answers, sink = AnswerTime(), MemorySink(delivery=Delivery.ON_COMMAND)
    with altered(perf_counter=lambda: 10.25):
        meter = SinkMeter()
    attached = AttachedSink(sink, 100, meter, answers)
    table = Meter().tables.of("public.t")
    assert answers.least_s(0.0) == 0.0
    for ops in (0, 1):  # rows of a backfill count none
        transaction = attached.ledger.begin(100 + ops, 0)
        op = ReplicationOp(Kind.INSERT, TABLE, 100 + ops, 0, new=["1"])
        sink.send(op, transaction)
        transaction.table, transaction.began = table, 10.0
        attached.ledger.commit(110 + ops, ops)
        sink.deliver(0)
        assert attached.advance() == 110 + ops
        assert answers.least_s(0.5) == (0.25 if ops else 0.0)


def test_what_it_saw_is_told_once() -> None:
    attached = AttachedSink(MemorySink(), 100, SinkMeter(), AnswerTime())
    attached.full = attached.roomy = True
    first, second = attached.sight(), attached.sight()
    assert (first.full, first.roomy) == (True, True)
    assert (second.full, second.roomy) == (False, False)
