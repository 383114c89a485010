"""A verbose sink names each op and no value; the rest is its target's."""

from structlog.testing import capture_logs

from tests.unit.pipeline.sinks.test_handler import TABLE, Target
from walstream.op import Kind, ReplicationOp
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.ports import proven
from walstream.pipeline.sinks.wrapper import FrontSink, VerboseSink
from walstream.records.producer_record import ProducerRecord


def test_each_op_is_named_and_goes_on() -> None:
    target, transaction = Target(), Transaction(8)
    sink = VerboseSink(target, {"sink": "target"})
    op = ReplicationOp(Kind.UPDATE, TABLE, 8, 3, new=["1", "s3cret"])
    with capture_logs() as said:
        assert not sink.send(op, transaction)
        sink.put(ProducerRecord(b"k", b"v"), op, transaction)
    assert said == [
        {
            "event": "op",
            "log_level": "info",
            "sink": "target",
            "table": "public.t",
            "lsn": "0/8",
            "kind": "update",
            "seq_id": 3,
        }
    ]
    assert target.sent == ["s3cret", (b"k", b"v", 3)]


def test_the_rest_is_the_targets() -> None:
    target = Target()
    sink = VerboseSink(target, {})
    assert (sink.name, sink.tally, sink.topics) == ("target", target.tally, {})
    assert sink.ready()
    assert sink.knows(TABLE)
    assert not sink.waiting
    assert not sink.in_flight
    sink.close()
    assert target.closed


class Proving(Target):
    """Target that left out what is at 7."""

    def proven(self, resume: int) -> int:
        return min(resume, 7)


def test_the_position_waits_for_what_the_target_left_out() -> None:
    sink = VerboseSink(FrontSink(Proving()), {})
    assert [proven(sink, lsn) for lsn in (6, 9)] == [6, 7]
    assert proven(VerboseSink(Target(), {}), 9) == 9
