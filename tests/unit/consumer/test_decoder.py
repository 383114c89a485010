"""Messages as records and ops."""

import json

import pytest
from confluent_kafka import Message

from consumer.decoder import Decoder, record_of, source_of
from consumer.group.assigned_partition import Place
from tests.support.loads.envelope import debezium, read, record
from tests.support.loads.op_record import ITEM, insert
from tests.support.oracles.debezium import golden
from walstream.errors import WalstreamError
from walstream.formats.op import OpEncoder
from walstream.op import Kind


def test_a_message_becomes_a_record_and_an_op() -> None:
    value = OpEncoder(ITEM).encode(insert(7, 1, ["1", None]))
    one = record_of(
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
    assert one[:3] == ("t", 2, 9)
    assert (one.key, one.timestamp_ms) == (b'["1"]', 1234)
    assert source_of(one) == "1/db/0"
    op = Decoder().op_of(one)
    assert op is not None
    assert op.exact
    assert (op.lsn, op.seq_id, op.new["n"], op.record) == (7, 1, None, one)


def test_what_is_no_op_is_refused() -> None:
    one = record_of(Message(offset=1, value=b"x", timestamp=(1, 0)), Place("t", 0))
    assert source_of(one) is None
    with pytest.raises(WalstreamError):
        Decoder().op_of(one)


ROW = "dbz.public.full_"


def test_a_record_of_debezium_is_an_op_with_typed_values() -> None:
    update = read(debezium(ROW, 1))
    assert (update.kind, update.table.full_name) == (Kind.UPDATE, "public.full_")
    assert (update.old.get("id", int), update.new.get("id", int)) == (1, 1)
    assert not update.exact
    assert update.key_names == {"id"}
    assert not update.snapshot


def test_both_halves_of_a_key_change_are_ops() -> None:
    halves = {
        name: place
        for place, one in enumerate(golden()[ROW])
        for name, _ in one.headers
        if name in {"__debezium.newkey", "__debezium.oldkey"} and one.value
    }
    delete = read(debezium(ROW, halves["__debezium.newkey"]))
    insert = read(debezium(ROW, halves["__debezium.oldkey"]))
    assert (delete.kind, insert.kind) == (Kind.DELETE, Kind.INSERT)
    assert (insert.lsn, insert.seq_id) == (delete.lsn, delete.seq_id + 1)


def test_what_was_not_sent_is_absent() -> None:
    toasted = debezium("dbz.public.toast_", 1)
    assert read(toasted).new.absent
    op = Decoder("another placeholder").op_of(toasted)
    assert op is not None
    assert not op.new.absent


def test_what_holds_no_op_is_passed_over() -> None:
    for other in (record(None), debezium("dbz.transaction", 0)):
        assert Decoder().op_of(other) is None


def test_a_header_makes_the_name_exact() -> None:
    op = read(debezium("dstr.public.full_", 0, {"walstream-position": b"99/3"}))
    assert (op.lsn, op.seq_id, op.exact) == (99, 3, True)


def test_an_op_in_another_order_of_fields_is_one_still() -> None:
    value = OpEncoder(ITEM).encode(insert(7, 1, ["1", None]))
    op = Decoder().op_of(record(dict(reversed(json.loads(value).items()))))
    assert op is not None
    assert (op.lsn, op.seq_id, op.exact) == (7, 1, True)


def test_a_row_alone_is_refused_by_both_names() -> None:
    with pytest.raises(WalstreamError, match=r"op record.*not a record of Debezium"):
        Decoder().op_of(record({"id": 1, "v": "a"}))
