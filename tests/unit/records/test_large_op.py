"""Records of large ops are, byte for byte, those of the same ops with whole texts."""

from dataclasses import replace

import pytest

from walstream.formats.op import OpEncoder
from walstream.formats.placeholder import StandIn
from walstream.op import Kind, LargeOp, ReplicationOp, Table, halves
from walstream.records.large_op import LargeRecord, made, plain, spelled, takes_large
from walstream.row import UNCHANGED, Value

TABLE = Table("public", "t", ("id", "a", "b"), key=(0,))
TEXT = 'quote " ä 😀 \n' * 100


def meant(text: str) -> StandIn:
    return StandIn(memoryview(text.encode()))


def op_of(old: list[Value] | None, new: list[Value] | None) -> ReplicationOp:
    kind = Kind.INSERT if old is None else Kind.UPDATE if new else Kind.DELETE
    return ReplicationOp(kind, TABLE, 100, 0, old, new, False, True)


ONE = meant(TEXT)
OPS = [
    op_of(None, ["1", ONE, "x"]),
    op_of(["1", ONE, None], ["2", ONE, meant("b")]),
    op_of(["1", meant(""), meant("a")], None),
]


@pytest.mark.parametrize("op", OPS)
def test_a_record_is_that_of_the_whole_texts(op: ReplicationOp) -> None:
    encode = OpEncoder(TABLE).encode
    large = made(op)
    assert type(large) is LargeOp
    record = LargeRecord(encode(large), large)
    assert record.value() == encode(plain(large))
    assert record.size() == len(record.value())
    assert type(plain(large)) is ReplicationOp


def test_the_halves_of_a_large_op_are_large() -> None:
    encode = OpEncoder(TABLE).encode
    for half in halves(made(OPS[1])):
        assert type(half) is LargeOp
        assert LargeRecord(encode(half), half).value() == encode(plain(half))


def test_a_text_that_looks_like_a_stand_in_is_left_alone() -> None:
    stranger = str.__str__(meant("x"))
    op = made(op_of(None, ["1", ONE, stranger]))
    encode = OpEncoder(TABLE).encode
    assert LargeRecord(encode(op), op).value() == encode(plain(op))


def test_a_row_key_is_never_stood_in_for() -> None:
    op = made(op_of(None, [meant("7"), ONE, None]))
    assert op.new is not None
    assert type(op.new[0]) is str
    assert op.new[0] == "7"
    assert type(op) is LargeOp
    alone = made(op_of(None, [meant("7"), "a", UNCHANGED]))
    assert type(alone) is ReplicationOp


def test_an_op_without_any_stays_what_it_is() -> None:
    op = op_of(None, ["1", "a", "b"])
    assert made(op) is op
    assert plain(op) is op
    assert spelled(op, (0, 1, 2)) is op


def test_only_what_is_asked_for_is_spelled() -> None:
    op = spelled(replace(made(OPS[1])), (1,))
    assert op.old is not None
    assert op.new is not None
    assert op.old[1] == op.new[1] == TEXT
    assert type(op.new[1]) is str
    assert isinstance(op.new[2], StandIn)


def test_a_sink_knows_no_stand_ins_unless_it_says_so() -> None:
    assert not takes_large(object())
