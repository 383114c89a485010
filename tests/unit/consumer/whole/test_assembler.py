"""What the assembler waits for, one history each."""

from collections.abc import Mapping

import pytest

from consumer.group.assigned_partition import Place
from consumer.op import ConsumerRecord, Op
from consumer.whole.assembler import TransactionAssembler
from consumer.whole.lane import Lane
from consumer.whole.open_transaction import Gap
from consumer.whole.pile import Piles
from consumer.whole.told import ResolvedMark, ToldTransaction
from walstream.formats.op import OpEncoder, decode
from walstream.op import Kind, ReplicationOp, Table

ITEM = Table("public", "item", ("id",))
FIRST, SECOND, THIRD = (Place("t", number) for number in range(3))


class History:
    """An assembler of three partitions, and what comes to them."""

    def __init__(self, memory: int = 1 << 20) -> None:
        piles = Piles(memory, lambda record: Op(decode(record.value or b""), record))
        self.assembler = TransactionAssembler(
            piles, lambda topic: topic == "t", lambda _place, _chunk: -1
        )
        for place in (FIRST, SECOND, THIRD):
            self.assembler.lanes[place] = Lane(place)

    def op(self, place: Place, lsn: int) -> None:
        self._take(place, ReplicationOp(Kind.INSERT, ITEM, lsn, 0, new=["1"]))

    def truncate(self, place: Place, lsn: int, partitions: int) -> None:
        op = ReplicationOp(Kind.TRUNCATE, ITEM, lsn, 0, partitions=partitions)
        self._take(place, op)

    def row(self, place: Place, lsn: int) -> None:
        """Have a backfilled row come, as of a snapshot at an LSN."""
        name = lsn, 2 << 32
        self._take(
            place, ReplicationOp(Kind.INSERT, ITEM, *name, new=["1"], snapshot=True)
        )

    def _take(self, place: Place, op: ReplicationOp) -> None:
        offset = self.assembler.lanes[place].next_offset
        value = OpEncoder(ITEM).encode(op)
        record = ConsumerRecord(place.topic, place.partition, offset, b"k", value)
        assert self.assembler.take(Op(decode(value), record))

    def tell(self, lsn: int, counts: Mapping[Place, int]) -> None:
        told = ToldTransaction(lsn, lsn + 5, lsn, lsn, dict(counts))
        self.assembler.tell(told, self.assembler.spine.next_offset)

    def answer(self, serial: int, *ends: int) -> None:
        """Say where the partitions ended, and the transaction topic."""
        places = FIRST, SECOND, THIRD, self.assembler.spine.place
        self.assembler.answer(serial, dict(zip(places, ends, strict=True)))

    def ask(self, *ends: int) -> None:
        self.answer(self.assembler.ask(), *ends)

    def next(self) -> tuple[int, bool] | None:
        """Return the LSN of what is due, and whether it is rows; handle it."""
        if (due := self.assembler.next()) is None:
            return None
        self.assembler.done(due)
        return due.whole.lsn, due.whole.snapshot


@pytest.fixture
def history() -> History:
    return History()


def test_an_end_that_was_asked_for_before_a_transaction_was_told_says_nothing(
    history: History,
) -> None:
    history.ask(0, 0, 0, 0)
    history.op(FIRST, 20)
    history.tell(20, {FIRST: 1})
    assert history.next() is None
    history.ask(1, 1, 0, 1)
    assert history.next() is None
    history.row(SECOND, 10)
    assert history.next() == (10, True)
    assert history.next() == (20, False)


def test_rows_wait_until_no_transaction_before_them_may_be_told(
    history: History,
) -> None:
    history.ask(0, 0, 0, 0)
    history.row(SECOND, 10)
    assert history.next() is None
    history.ask(0, 1, 0, 1)
    assert history.next() is None, "something is told that was not read"
    history.tell(5, {})
    history.ask(0, 1, 0, 1)
    assert [history.next(), history.next()] == [(5, False), (10, True)]


def test_a_gap_is_final_when_partition_and_transaction_topic_were_read_once_more(
    history: History,
) -> None:
    """Keys moved between two runs: the first one's later op comes first."""
    history.op(FIRST, 20)
    history.tell(10, {FIRST: 1})
    assert history.assembler.gap() == Gap(10, FIRST, 1, 0)
    serial = history.assembler.doubt()
    history.answer(serial, 2, 0, 0, 1)
    assert not history.assembler.is_final(serial), "of the partition something comes"
    history.answer(serial, 1, 0, 0, 2)
    assert not history.assembler.is_final(serial), "it may be told otherwise"
    history.answer(serial, 1, 0, 0, 1)
    assert history.assembler.is_final(serial)
    history.op(FIRST, 10)
    assert history.assembler.gap() is None


def test_an_end_of_before_the_doubt_makes_no_gap_final(history: History) -> None:
    history.op(FIRST, 20)
    history.tell(10, {FIRST: 1})
    history.ask(1, 0, 0, 1)
    assert history.assembler.gap() is not None
    assert not history.assembler.is_final(history.assembler.doubt())


def test_records_that_nothing_tells_are_no_rest(history: History) -> None:
    """A sink without txinfo, or one that writes another transaction topic."""
    assembler = history.assembler
    idle = [assembler.is_idle]
    history.op(FIRST, 10)
    assert history.next() is None
    idle.append(assembler.is_idle)
    assert "which is not told" in history.assembler.explained
    history.tell(10, {FIRST: 1})
    history.ask(1, 0, 0, 1)
    assert history.next() == (10, False)
    assert [*idle, assembler.is_idle] == [True, False, True]


def test_all_that_lacks_something_is_counted(history: History) -> None:
    history.op(FIRST, 20)  # not told
    for lsn in (10, 30, 40):
        history.tell(lsn, {FIRST: 1, SECOND: 1})
    history.op(FIRST, 40)
    history.op(SECOND, 40)
    assert history.assembler.gaps() == (3, 30)


def test_what_lies_on_disk_keeps_other_partitions_from_being_read() -> None:
    history = History(memory=1)
    history.tell(10, {FIRST: 1})
    history.ask(1, 0, 0, 1)
    history.op(SECOND, 20)
    assert history.assembler.bytes > 1
    assert history.assembler.needed() == {FIRST}


def test_untold_records_wait_for_the_transaction_topic_alone(history: History) -> None:
    history.op(FIRST, 10)
    assert history.assembler.needed() == set()


def test_no_more_is_told_ahead_than_the_next_may_need(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("consumer.whole.assembler._AHEAD", 2)
    assembler, ahead = history.assembler, list[bool]()
    history.tell(10, {FIRST: 1})
    ahead.append(assembler.is_told_ahead)
    history.tell(20, {FIRST: 1})
    ahead.append(assembler.is_told_ahead)
    history.ask(0, 0, 0, 2)  # it ends without it: a replay may count otherwise
    ahead.append(assembler.is_told_ahead)
    history.ask(1, 0, 0, 2)
    ahead.append(assembler.is_told_ahead)
    history.op(SECOND, 5)  # not told yet
    ahead.append(assembler.is_told_ahead)
    assert ahead == [False, True, False, True, False]


def test_a_truncate_is_counted_as_the_run_that_told_it_found_partitions(
    history: History,
) -> None:
    """It came to one of two partitions, then the source restarted with three."""
    for places, count in (([FIRST], 2), ([FIRST, SECOND, THIRD], 3)):
        for place in places:
            history.truncate(place, 10, count)
    history.tell(10, dict.fromkeys([FIRST, SECOND, THIRD], 1))
    history.ask(2, 1, 1, 1)
    assert history.next() == (10, False)


def test_what_a_deleted_topic_had_is_missed_once_a_mark_is_behind(
    history: History,
) -> None:
    gone = Place("t", 7)
    history.tell(10, {gone: 2})
    assert history.assembler.gap() is None, "it may come to be"
    history.assembler.mark(ResolvedMark(11, {}), 1)
    assert history.assembler.gap() == Gap(10, gone, 2, 0)
