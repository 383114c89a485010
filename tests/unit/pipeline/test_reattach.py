"""A sink that comes back: held, then sent what is left, in order and in its room."""

import pytest

from walstream.errors import HistoryError
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Ledger, Transaction
from walstream.pipeline.reattach import JoiningSink
from walstream.testing import Delivery, MemorySink

TABLE = Table("public", "t", ("id",), key=(0,))


def fill(joining: JoiningSink, *lsns: int) -> Ledger:
    """Hand over a transaction an LSN."""
    ledger = Ledger(lsns[0])
    for lsn in lsns:
        transaction = ledger.begin(lsn)
        op = ReplicationOp(Kind.INSERT, TABLE, lsn, 0, new=["1"])
        joining.send(op, transaction)
        ledger.commit(lsn + 100)
    return ledger


def test_nothing_goes_out_before_the_other_one_ended() -> None:
    sink, place = MemorySink(), list[int]()
    joining = JoiningSink(sink, lambda: place[0] if place else None, lambda _: True)
    ledger = fill(joining, 100, 200, 300)
    assert joining.ready()
    assert (sink.sent, ledger.advance(), joining.in_flight) == ([], 100, 3)
    place.append(200)
    assert joining.ready()
    assert joining.joined
    assert [record.lsn for record in sink.sent] == [200, 300]
    assert ledger.advance() == 400


def test_what_finds_no_room_goes_out_later_and_the_other_is_asked_once() -> None:
    asked = []

    def ended() -> int:
        asked.append(1)
        return 100

    sink = MemorySink(delivery=Delivery.ON_COMMAND, limit=1)
    joining = JoiningSink(sink, ended, lambda _: True)
    fill(joining, 100, 200, 300)
    states = []
    for _ in range(3):
        states.append(joining.joined)
        joining.ready()
        sink.deliver_all()
    assert states == [False, False, False]
    assert joining.joined
    assert [record.lsn for record in sink.sent] == [100, 200, 300]
    assert len(asked) == 1


def test_one_that_is_given_up_sends_nothing() -> None:
    sink, answers = MemorySink(), [False, True]
    joining = JoiningSink(sink, lambda: 100, lambda _: answers.pop(0))
    fill(joining, 100)
    closed = []
    for _ in range(2):  # at first it is too late for that
        joining.give_up(None)
        closed.append(sink.closed)
    assert closed == [False, True]
    assert joining.in_flight == 0


class Telling(MemorySink):
    """Sink that tells the end of each transaction, as one with `txinfo` does."""

    def __init__(self) -> None:
        super().__init__(delivery=Delivery.ON_COMMAND, limit=1)
        self.told: list[object] = []
        self.whose: Transaction | None = None

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        if transaction is not self.whose:
            self.whose = transaction
            transaction.at_end += (self.end,)
        self.told.append(op.seq_id)
        return super().send(op, transaction)

    def end(self, transaction: Transaction, end_lsn: int) -> None:
        self.whose = None
        self.told.append((transaction.lsn, end_lsn))


@pytest.mark.parametrize("committed_after", [0, 1, 2, 3])
def test_a_transaction_ends_once_behind_all_of_it(committed_after: int) -> None:
    sink = Telling()
    joining = JoiningSink(sink, lambda: 100, lambda _: True)
    ledger = Ledger(100)
    transaction = ledger.begin(100)
    for number in range(3):
        joining.send(
            ReplicationOp(Kind.INSERT, TABLE, 100, number, new=["1"]), transaction
        )
    for turn in range(4):
        if turn == committed_after:
            ledger.commit(200)
        joining.ready()
        sink.deliver_all()
    assert sink.told == [0, 1, 2, (100, 200)]
    assert ledger.advance() == 200


def test_what_is_refused_at_a_commit_that_was_read_before_is_not_delivered() -> None:
    sink = MemorySink()
    joining = JoiningSink(sink, lambda: 100, lambda _: True)
    ledger = Ledger(100)
    transaction = ledger.begin(100)

    def refuse(_transaction: Transaction, _end: int) -> None:
        raise HistoryError("too large")

    joining.send(ReplicationOp(Kind.INSERT, TABLE, 100, 0, new=["1"]), transaction)
    ledger.commit(200)
    transaction.at_end = (refuse,)
    with pytest.raises(HistoryError):
        joining.ready()
    assert ledger.advance() == 100
