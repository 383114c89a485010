"""Messages as records and ops."""

import pytest
from confluent_kafka import Message

from consumer.decoder import op_of, record_of, source_of
from consumer.group.assigned_partition import Place
from tests.support.loads.op_record import ITEM, insert
from walstream.errors import WalstreamError
from walstream.formats.op import OpEncoder


def test_a_message_becomes_a_record_and_an_op() -> None:
    value = OpEncoder(ITEM).encode(insert(7, 1, ["1", None]))
    record = record_of(
        Message(
            topic="t",
            partition=2,
            offset=9,
            key=b'["1"]',
            value=value,
            headers=[("x", b"y"), ("walstream-source", b"1/db/0")],
            timestamp=(1, 1234),
        ),
        Place("t", 2),
    )
    assert record[:3] == ("t", 2, 9)
    assert (record.key, record.timestamp_ms) == (b'["1"]', 1234)
    assert source_of(record) == "1/db/0"
    op = op_of(record)
    assert (op.lsn, op.seq_id, op.new["n"], op.record) == (7, 1, None, record)


def test_what_is_no_op_is_refused() -> None:
    record = record_of(Message(offset=1, value=b"x", timestamp=(1, 0)), Place("t", 0))
    assert source_of(record) is None
    with pytest.raises(WalstreamError):
        op_of(record)
