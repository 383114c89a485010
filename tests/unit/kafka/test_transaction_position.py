"""What Kafka's transactions have is left out, when the stream meets the same again."""

from typing import Any

import pytest

from walstream.errors import Restart
from walstream.kafka.replay_mark import ReplayMark, replay_entry
from walstream.kafka.transaction_plan import TransactionPlan
from walstream.kafka.transaction_position import (
    LAST_SEQ_ID,
    DeliveredTransactions,
    HistoryPlace,
    TransactionPosition,
    decode_position,
)
from walstream.lsn import NEVER
from walstream.op import Kind, MessageOp, ReplicationOp, Table
from walstream.pipeline.ledger import Transaction
from walstream.telemetry.meter import SinkMeter

_TABLE = Table("public", "t", ("id",))
_ORIGIN = "7/shop/0"


def op(lsn: int, seq_id: int = 0, commit_time: int = 5, **more: Any) -> ReplicationOp:
    return ReplicationOp(
        Kind.INSERT, _TABLE, lsn, seq_id, commit_time=commit_time, **more
    )


def message(lsn: int, *, commit_time: int = 5, xid: int | None = 1) -> MessageOp:
    return MessageOp("m", b"", lsn, lsn, xid, commit_time)


PLAN = TransactionPlan("slot-7-kafka-stream", (), "positions", 0.1, 60_000)


def place(**more: Any) -> HistoryPlace:
    told = {"origin": _ORIGIN, "resume": 50, "flush": 1000, "repeats": True}
    return HistoryPlace(**{**told, **more})


def delivered(**more: Any) -> DeliveredTransactions:
    return DeliveredTransactions("kafka", PLAN, place(**more), SinkMeter())


def at(lsn: int, seq_id: int = LAST_SEQ_ID, **more: Any) -> TransactionPosition:
    told: dict[str, Any] = {"commit_time": 5, "origin": _ORIGIN, **more}
    return TransactionPosition(lsn, seq_id=seq_id, **told)


def test_ops_up_to_a_whole_transaction_are_left_out() -> None:
    found = delivered()
    assert not found.begin(at(100))
    transaction = Transaction(60)
    assert found.has(op(60), transaction)
    assert found.proven(70) == 60  # the mark was not met yet
    assert found.has(op(100, 7), Transaction(100))
    assert found.proven(110) == 110
    assert not found.has(op(120), Transaction(120))


def test_a_part_is_left_out_up_to_its_last_op() -> None:
    found = delivered()
    found.begin(at(100, 3))
    transaction = Transaction(100)
    assert [found.has(op(100, seq), transaction) for seq in (2, 3, 4)] == [
        True,
        True,
        False,
    ]
    assert transaction.last_seq_id == 4


def test_another_transaction_of_that_lsn_begins_again() -> None:
    disowned = []
    found = DeliveredTransactions(
        "kafka", PLAN, place(), SinkMeter(), lambda: disowned.append(1)
    )
    found.begin(at(100))
    assert found.has(op(60), Transaction(60))
    with pytest.raises(Restart, match="is not of this server's history"):
        found.has(op(100, commit_time=6), Transaction(100))
    assert disowned


@pytest.mark.parametrize("by", ["op", "position"])
def test_a_mark_that_is_not_met_begins_again(by: str) -> None:
    found = delivered()
    found.begin(at(100))
    assert found.has(op(60), Transaction(60))
    with pytest.raises(Restart):
        _ = found.has(op(101), Transaction(101)) if by == "op" else found.proven(101)


def test_a_mark_by_which_nothing_was_left_out_needs_no_proof() -> None:
    found = delivered()
    found.begin(at(100))
    assert not found.has(op(101), Transaction(101))
    assert found.proven(110) == 110


@pytest.mark.parametrize(
    ("position", "more", "why"),
    [
        (at(100, origin="8/shop/0"), {}, "it is of another history, 8/shop/0"),
        (
            at(100, origin="7/shop/0"),
            {"origin": "7/shop/1"},  # after a reset
            "it is of another history, 7/shop/0",
        ),
        # a state folder that is lost knows of no reset
        (at(100, origin="7/shop/1"), {}, ""),
        (at(100, origin="7/shop/x"), {}, "it is of another history, 7/shop/x"),
        (at(2000), {}, "it is at 0/7D0, and the server's WAL ends before that"),
        (
            at(100),
            {"replay": ReplayMark("x")},
            "what it covers is sent again: it is from before a replay",
        ),
        (at(100, replay="x"), {"replay": ReplayMark("x")}, ""),
        (at(100, replay="x"), {}, ""),  # the state folder was lost
        (at(100), {"repeats": False}, ""),
        (at(40), {}, ""),
        (at(40), {"replay": ReplayMark("x")}, ""),  # it covers nothing that comes
        (None, {}, ""),
    ],
)
def test_what_counts(
    position: TransactionPosition | None, more: dict[str, Any], why: str
) -> None:
    found = delivered(**more)
    assert found.begin(position) == why
    counts = position is not None and position.lsn == 100 and not why
    counts = counts and more.get("repeats", True)
    assert found.has(op(60), Transaction(60)) == counts


def test_an_op_that_waited_behind_a_later_one_is_left_out_all_the_same() -> None:
    """Its topic was not known yet, and a handler passed on both."""
    found = delivered()
    found.begin(at(100))
    assert found.has(op(100), Transaction(100))
    assert not found.has(op(120), Transaction(120))
    assert found.has(op(60), Transaction(60))


@pytest.mark.parametrize("left_out", [True, False])
def test_a_mark_whose_topic_is_not_known_yet_is_met_behind_later_ops(
    *, left_out: bool
) -> None:
    found = delivered()
    found.begin(at(100))
    if left_out:
        assert found.has(op(60), Transaction(60))
    found.waiting += 1  # the op of the mark
    assert not found.has(op(120), Transaction(120))
    assert found.has(op(100), Transaction(100))
    found.waiting -= 1
    assert found.proven(110) == 110


def test_the_position_stays_before_an_op_that_waited_behind_a_later_one() -> None:
    """It is left out as the later one is, though that was asked for first."""
    found = delivered()
    found.begin(at(100))
    assert found.has(op(80), Transaction(80))
    assert found.has(op(60), Transaction(60))
    assert found.proven(90) == 60


def test_no_position_takes_the_place_of_a_mark_that_did_not_come() -> None:
    """Else what was left out by it would be lost."""
    found = delivered()
    found.begin(at(100))
    assert found.has(op(60), Transaction(60))
    found.waiting += 1
    later = Transaction(120, 5)
    assert not found.has(op(120), later)
    found.waiting -= 1  # it was none of the mark's
    with pytest.raises(Restart):
        found.position([later], whole=True)


@pytest.mark.parametrize(
    ("value", "repeats", "text", "is_bad"),
    [
        (None, True, "Kafka has no position", False),
        (None, False, "Kafka has nothing beyond", False),  # it creates its slot
        (b"something else", True, "Kafka has no position", True),
        (at(40).encode(), True, "Kafka has nothing beyond", False),
        (at(100).encode(), True, "what Kafka has already", False),
        (at(100, origin="8/shop/0").encode(), True, "disagree", True),
    ],
)
def test_what_the_start_says(
    value: bytes | None, text: str, *, repeats: bool, is_bad: bool
) -> None:
    said = delivered(repeats=repeats).open(value)
    assert text in said.text
    assert said.is_bad == is_bad


def test_nothing_is_left_out_where_the_stream_ends_before_the_mark() -> None:
    found = delivered()
    found.begin(at(100))
    found.until = 90
    assert not found.has(op(60), Transaction(60))
    assert not found.has_message(message(60), Transaction(60))
    found.until = NEVER
    assert found.has(op(95), Transaction(95))


def test_backfilled_rows_are_sent_and_tell_nothing() -> None:
    found = delivered()
    found.begin(at(100))
    transaction = Transaction(60)
    assert not found.has(op(60, snapshot=True), transaction)
    assert found.position([transaction], whole=True) is None


def test_messages_of_a_transaction_in_part_come_again() -> None:
    found = delivered()
    found.begin(at(100, 3))
    assert found.has_message(message(90), Transaction(90))
    assert not found.has_message(message(100), Transaction(100))
    whole = delivered()
    whole.begin(at(100))
    assert whole.has_message(message(100), Transaction(100))
    assert not whole.has_message(message(101), Transaction(101))


def test_messages_alone_tell_a_position_and_meet_it() -> None:
    sent = delivered()
    transaction = Transaction(100, 5)
    assert not sent.has_message(message(100), transaction)
    assert sent.position([transaction], whole=True) == at(100).encode()
    found = delivered()
    found.begin(at(100))
    assert found.has_message(message(60), Transaction(60))
    assert found.proven(70) == 60
    assert found.has_message(message(100), Transaction(100))
    assert found.proven(110) == 110


def test_a_part_with_messages_alone_tells_that_all_before_is_there() -> None:
    sent = delivered()
    one, part = Transaction(60, 5), Transaction(100, 5)
    sent.has(op(60, 2), one)
    sent.has_message(message(100), part)
    told = sent.position([one, part], whole=False)
    assert told == at(100, -1).encode()
    found = delivered()
    found.begin(at(100, -1))
    assert found.has(op(60, 2), Transaction(60))
    assert not found.has_message(message(100), Transaction(100))
    assert not found.has(op(100, 0), Transaction(100))


@pytest.mark.parametrize("other", [{"lsn": 101}, {"commit_time": 6}])
def test_messages_of_another_history_are_not_left_out(other: dict[str, int]) -> None:
    found = delivered()
    found.begin(at(100))
    assert found.has_message(message(60), Transaction(60))
    with pytest.raises(Restart):
        found.has_message(message(**{"lsn": 100, **other}), Transaction(100))


def test_a_message_outside_of_transactions_tells_no_position() -> None:
    found = delivered()
    found.begin(at(100))
    assert found.has_message(message(90, xid=None, commit_time=9), Transaction(90))
    alone = Transaction(120)
    assert not found.has_message(message(120, xid=None), alone)
    assert found.position([alone], whole=True) is None


def test_the_position_is_that_of_the_last_transaction_with_ops() -> None:
    found = delivered(replay=ReplayMark("x"))
    one, other, none = Transaction(60, 5), Transaction(70, 6), Transaction(80, 7)
    found.has(op(60, 2), one)
    found.has(op(70, 4, 6), other)
    whole = found.position([one, other, none], whole=True)
    assert whole == at(70, commit_time=6, replay="x").encode()
    assert found.position([other], whole=True) is None  # it says so already
    part = at(70, 4, commit_time=6, replay="x").encode()
    assert found.position([other], whole=False) == part


@pytest.mark.parametrize("position", [at(100), at(100, 0, replay="x")])
def test_what_is_written_is_read(position: TransactionPosition) -> None:
    assert decode_position(position.encode()) == position


@pytest.mark.parametrize(
    "value",
    [b"", b"[]", b"1", b"{}", b'{"lsn":"1","commit_time":2,"origin":"a"}', b"\xff"],
)
def test_what_others_wrote_is_no_position(value: bytes) -> None:
    assert decode_position(value) is None


def test_each_replay_has_another_mark() -> None:
    assert replay_entry() != replay_entry()


def test_what_a_position_covers_is_delivered() -> None:
    assert delivered().covered(None) == (50, -1)
    assert delivered().covered(b"no position") == (50, -1)
    assert delivered().covered(at(40).encode()) == (50, -1)
    assert delivered().covered(at(60, 3).encode()) == (60, 3)
    assert delivered(repeats=False).covered(at(60, 3).encode()) == (60, 3)


def test_a_position_that_does_not_count_covers_nothing() -> None:
    """What is behind the state folder's comes again: it is not there."""
    other = at(60, origin="8/shop/0").encode()
    assert delivered().covered(other) == (50, -1)
    assert delivered().covered(at(1000).encode()) == (50, -1)
    replayed = delivered(replay=ReplayMark("new"))
    assert replayed.covered(at(60, replay="old").encode()) == (50, -1)
    assert replayed.covered(at(60, replay="new").encode()) == (60, LAST_SEQ_ID)


def test_a_stream_that_creates_its_slot_repeats_nothing() -> None:
    assert delivered().repeats
    assert not delivered(repeats=False).repeats
