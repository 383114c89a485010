"""The op as an application sees it."""

from datetime import UTC, datetime

import pytest

from consumer.op import ConsumerRecord, Op
from tests.support.loads.op import make
from walstream.formats.op import decode
from walstream.op import Kind

RECORD = ConsumerRecord(
    "t", 3, 7, b'["1"]', b"secret", 1_700_000_000_123, (("h", b"v"),)
)


def test_a_record_is_where_it_lay_and_does_not_change() -> None:
    assert (RECORD.topic, RECORD.partition, RECORD.offset) == ("t", 3, 7)
    assert RECORD.timestamp == datetime(2023, 11, 14, 22, 13, 20, 123_000, UTC)
    with pytest.raises(AttributeError):
        RECORD.offset = 8  # type: ignore[misc]  # is what is claimed
    assert repr(RECORD) == "<t[3] offset 7>"


def test_an_op_shows_what_its_record_says() -> None:
    value = (
        b'{"table_name":"t","col_names":["id","v"],"lsn":28318112,"seq_id":4,'
        b'"op":{"Update":[null,["1",null]]},"schema":"s","absent":{"new":["v"]}}'
    )
    op = Op.of(decode(value), RECORD)
    assert (op.kind, op.lsn, op.seq_id) == (Kind.UPDATE, 28318112, 4)
    assert op.table.full_name == "s.t"
    assert op.new["id"] == "1"
    assert op.new.absent == {"v"}
    assert not op.old
    assert op.record is RECORD
    assert not op.snapshot
    assert "Update s.t 0/1B019A0 4" in repr(op)


def test_rows_are_wrapped_once() -> None:
    op = make(Kind.UPDATE, "public.t", new={"id": "1"}, old={"id": "1"})
    assert op.new is op.new
    assert op.old is op.old
    assert op.old == op.new


def test_a_truncate_tells_its_partitions_and_has_no_rows() -> None:
    op = make(Kind.TRUNCATE, "public.t", columns=("id",), partitions=4)
    assert op.partitions == 4
    assert not op.new
    assert not op.old


def test_a_backfilled_row_is_told() -> None:
    assert make(Kind.INSERT, "public.t", new={"id": "1"}, snapshot=True).snapshot
