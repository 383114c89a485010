"""Rows between two transactions: sent whole, counted apart, in room that there is."""

from collections.abc import Callable

import pytest

from walstream.errors import (
    PermissionLacking,
    RecordRefused,
    Restart,
    Transient,
    WalstreamError,
)
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.fanout import Fanout
from walstream.pipeline.interleave import Interleave
from walstream.pipeline.ledger import Shares
from walstream.testing import Delivery, MemorySink, Reject, faulty

TABLE = Table("public", "t", ("id",), key=(0,))


def row(place: int, index: int) -> ReplicationOp:
    return ReplicationOp(
        Kind.INSERT, TABLE, place - 1, index, new=[str(index)], snapshot=True
    )


class Given:
    """Gives so many rows once."""

    def __init__(self, rows: int) -> None:
        self.left = rows
        self.out: list[Shares] = []
        self.errors: list[WalstreamError] = []
        self.noted: list[ReplicationOp] = []
        self.note = self.noted.append

    def rows(self, place: int, known: Callable[[Table], bool]) -> list[ReplicationOp]:
        if not known(TABLE):
            return []
        rows, self.left = self.left, 0
        return [row(place, index) for index in range(rows)]

    def pending(self, most: int) -> list[str]:
        return ["public.t"][:most] if self.left else []

    def sent(self, transaction: Shares) -> None:
        self.out.append(transaction)

    def refused(self, error: WalstreamError) -> None:
        self.errors.append(error)


def turn(inset: Interleave, place: int, *, closed: bool = False) -> bool:
    inset.begin_turn(closed=closed)
    return inset.let_in(place)


def test_the_position_stays_below_until_they_are_delivered() -> None:
    given = Given(2)
    sink = MemorySink(delivery=Delivery.ON_COMMAND)
    inset = Interleave(ledger := Fanout([sink], 100), given)
    assert turn(inset, 200)
    assert [record.lsn for record in sink.sent] == [199, 199]
    (transaction,) = given.out
    assert (transaction.lsn, transaction.end_lsn) == (199, 200)
    assert ledger.advance() == 100
    sink.deliver_all()
    assert ledger.advance() == 200
    assert ledger.delivered_ops == 0  # they are none of the stream's


def test_rows_without_room_go_on_before_all_else() -> None:
    given = Given(3)
    sink = MemorySink(delivery=Delivery.ON_COMMAND, limit=1)
    inset = Interleave(Fanout([sink], 100), given)
    waiting = []
    for place in (200, 300, 300):  # the place that they were given for counts
        assert not turn(inset, place)
        waiting.append(inset.waiting)
        sink.deliver_all()
    assert waiting == [True, True, False]
    assert [record.lsn for record in sink.sent] == [199, 199, 199]
    assert len(given.out) == 1


def test_they_come_in_once_a_turn_and_not_in_a_drain() -> None:
    given = Given(1)
    sink = MemorySink()
    inset = Interleave(Fanout([sink], 100), given)
    assert turn(inset, 200, closed=True)
    assert sink.sent == []
    assert turn(inset, 200)
    assert inset.moved
    given.left = 1
    assert inset.let_in(200)
    assert len(sink.sent) == 1
    assert inset.note is not None


def test_what_is_abandoned_is_not_called_sent() -> None:
    given = Given(3)
    sink = MemorySink(delivery=Delivery.ON_COMMAND, limit=1)
    inset = Interleave(ledger := Fanout([sink], 100), given)
    turn(inset, 200)
    inset.abandon()
    assert not inset.waiting
    sink.deliver_all()
    assert ledger.advance() == 200
    assert ledger.idle
    assert given.out == []
    given.left = 1  # the backfill reads them anew
    turn(inset, 300)
    assert [record.lsn for record in sink.sent] == [199, 299]


@pytest.mark.parametrize("made", [RecordRefused, PermissionLacking, WalstreamError])
def test_a_row_that_a_sink_never_takes_does_not_end_the_stream(
    made: type[WalstreamError],
) -> None:
    error = made("not this one")
    given = Given(3)
    sink = faulty(MemorySink(), send=[None, Reject(error)])
    inset = Interleave(ledger := Fanout([sink], 100), given)
    assert not turn(inset, 200)
    assert given.errors == [error]
    assert given.out == []
    assert ledger.advance() == 200
    assert turn(inset, 300)


@pytest.mark.parametrize("made", [Restart, Transient])
def test_a_row_that_may_go_later_ends_this_run_of_the_stream(
    made: type[WalstreamError],
) -> None:
    given = Given(1)
    sink = faulty(MemorySink(), send=[Reject(made("not now"))])
    with pytest.raises(made):
        turn(Interleave(Fanout([sink], 100), given), 200)
    assert given.errors == []


def test_every_sink_knows_the_table_before_its_rows_come() -> None:
    first, second = MemorySink(), MemorySink()
    second.unknown.add("public.t")
    inset = Interleave(Fanout([first, second], 100), Given(1))
    assert turn(inset, 200)
    assert not inset.waiting
    assert first.sent == []
    second.unknown.clear()
    assert turn(inset, 300)
    assert [record.lsn for record in first.sent + second.sent] == [299, 299]


def test_without_anything_beside_there_is_always_room() -> None:
    inset = Interleave(Fanout([MemorySink()], 100), None)
    assert turn(inset, 200)
    assert inset.note is None
    inset.abandon()


def test_rows_wait_until_what_they_saw_may_be_given() -> None:
    given = Given(1)
    sink = MemorySink()
    asked: list[int] = []

    def admits(lsn: int) -> bool:
        asked.append(lsn)
        return len(asked) > 1

    inset = Interleave(Fanout([sink], 100), given, admits)
    assert not turn(inset, 200)
    assert (inset.waiting, inset.moved, sink.sent) == (True, False, [])
    assert turn(inset, 300)
    assert asked == [199, 199]
    assert [record.lsn for record in sink.sent] == [199]


def test_rows_come_in_no_turn_that_did_not_begin() -> None:
    given, sink = Given(1), MemorySink()
    inset = Interleave(Fanout([sink], 100), given)
    moved = [inset.moved]
    assert inset.let_in(200)
    assert (sink.sent, inset.waiting) == ([], False)
    moved.append(inset.moved)
    turn(inset, 200)
    moved.append(inset.moved)
    inset.begin_turn(closed=False)
    moved.append(inset.moved)
    assert moved == [False, False, True, False]


def test_tables_whose_rows_are_still_to_come_are_named() -> None:
    inset = Interleave(Fanout([MemorySink()], 100), Given(1))
    assert inset.open is True
    assert list(inset.pending(3)) == ["public.t"]
    assert list(inset.pending(0)) == []
    turn(inset, 200)
    assert list(inset.pending(3)) == []
    nothing = Interleave(Fanout([MemorySink()], 100), None)
    assert nothing.open is False
    assert list(nothing.pending(3)) == []


def test_the_stream_goes_on_behind_the_last_row() -> None:
    """When the row was taken that found no more room after it, too."""
    given = Given(2)
    sink = MemorySink(delivery=Delivery.ON_COMMAND, limit=2)
    inset = Interleave(Fanout([sink], 100), given)
    assert not turn(inset, 200)
    assert not inset.waiting
    assert len(given.out) == 1
