"""One table's way beside the stream; its whole is tests/property/test_beside.py."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from walstream.errors import Transient
from walstream.op import Kind, ReplicationOp, Table
from walstream.sources.postgres.incremental.chunk import (
    Key,
    KeyChunk,
    Visibility,
)
from walstream.sources.postgres.incremental.progress import TableRequest
from walstream.sources.postgres.incremental.table_run import MOST_ROWS, ChunkLimits, Run

PLACE = 1000


def table(*columns: str) -> Table:
    return Table("public", "t", columns or ("id", "v"), key=(0,))


def at_once(task: Callable[..., Any], *arguments: Any) -> Future[Any]:
    future: Future[Any] = Future()
    try:
        future.set_result(task(*arguments))
    except Exception as error:  # noqa: BLE001 - the future tells
        future.set_exception(error)
    return future


class Rows:
    """A table of so many rows, which no transaction writes to."""

    def __init__(self, rows: int = 3, size: int = 0) -> None:
        self.count = rows
        self.size = size  # bytes of a row
        self.asked: list[tuple[Key | None, int]] = []
        self.conditions: list[str] = []
        self.marks = 0
        self.oldest = [50]  # that runs, at each look; the last again and again
        self.columns: tuple[str, ...] = ()
        self.modifiers: dict[Key | None, tuple[int, ...]] = {}  # by what is read behind
        self.now = 50  # the next transaction's number

    def mark(self) -> int:
        self.marks += 1
        return 40

    def seen(self, later_s: float) -> Visibility:
        del later_s
        oldest = self.oldest.pop(0) if len(self.oldest) > 1 else self.oldest[0]
        return Visibility(self.now, [oldest] if oldest < 50 else [])

    def blockers(self) -> str:
        return ""

    def table(self, name: str) -> tuple[Table, int]:
        del name
        return table(), PLACE

    def read(
        self, name: str, after: Key | None, key: object, most: int, where: str = ""
    ) -> KeyChunk:
        del name, key
        self.conditions.append(where)
        self.asked.append((after, most))
        first = int(after[0]) + 1 if after else 0
        ids = range(first, min(first + most, self.count))
        found = table(*self.columns)
        found.modifiers = self.modifiers.get(after, ())
        return KeyChunk(
            found,
            [[str(number), "v"] for number in ids],
            (0,),
            Visibility(self.now),
            PLACE,
            ids.stop == self.count,
            self.size * len(ids),
        )


def known(_: Table) -> bool:
    return True


def drive(run: Run, turns: int = 20, place: int = PLACE) -> list[ReplicationOp]:
    found = []
    for _ in range(turns):
        if not run.over:
            found += run.rows(place, lambda: 5, known)
    return found


def deleted(key: str) -> ReplicationOp:
    op = ReplicationOp(Kind.DELETE, table(), 1, 0, [key, None])
    op.xid = 60
    return op


def test_rows_come_in_numbered_below_the_place_where_they_do() -> None:
    reader = Rows()
    run = Run("public.t", TableRequest(), reader, at_once)
    assert drive(run, place=PLACE - 1) == []
    assert run.high == PLACE
    ops = drive(run, place=PLACE + 7)
    assert [(op.lsn, op.seq_id) for op in ops] == [
        (PLACE + 6, (5 << 32) + index) for index in range(3)
    ]
    assert all(op.snapshot and op.kind is Kind.INSERT for op in ops)
    assert run.over
    assert (run.wish.after, run.wish.rows) == (("2",), 3)


def test_it_goes_on_behind_what_was_delivered_before() -> None:
    reader = Rows()
    wish = TableRequest(after=("0",), key=("id",), rows=1)
    run = Run("public.t", wish, reader, at_once)
    assert [(op.new or ())[0] for op in drive(run)] == ["1", "2"]
    assert run.wish.rows == 3


def test_nothing_is_read_while_an_older_transaction_runs() -> None:
    reader = Rows()
    reader.oldest = [39, 39, 40]
    run = Run("public.t", TableRequest(), reader, at_once)
    waited = []
    for _ in range(4):
        run.rows(PLACE, lambda: 5, known)
        waited.append((run.waits, bool(reader.asked)))
    assert waited == [(True, False), (True, False), (False, True), (False, True)]


def test_a_void_watch_begins_anew_behind_the_last_row_and_waits_no_more() -> None:
    reader = Rows(1200)
    run = Run("public.t", TableRequest(), reader, at_once)
    assert len(drive(run, turns=1)) == 500
    other = Table("public", "t", ("id", "v"), key=(1,))
    run.note(deleted("1"))
    run.note(ReplicationOp(Kind.INSERT, other, 1, 0, new=["1", "v"]))
    reader.now = 61
    ops = drive(run)
    assert reader.marks == 1
    assert [(op.new or ())[0] for op in ops] == [str(n) for n in range(500, 1200)]


def submitting(held: list[Callable[[], None]]) -> Callable[..., Future[Any]]:
    """Do at once what is asked, but for reads: those are held."""

    def submit(task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        if task.__name__ != "read":
            return at_once(task, *arguments)
        future: Future[Any] = Future()
        held.append(lambda: future.set_result(task(*arguments)))
        return future

    return submit


def test_more_than_may_be_held_has_less_read_and_is_told() -> None:
    reader, held = Rows(), list[Callable[[], None]]()
    run = Run(
        "public.t", TableRequest(), reader, submitting(held), ChunkLimits(entries=2)
    )
    assert drive(run) == []
    for key in "abc":
        run.note(deleted(key))
    held.pop()()
    assert drive(run) == []
    assert run.remark == "the watch overflowed 1 times"
    assert run.overflows == 1
    for key in "ab":
        run.note(deleted(key))
    held.pop()()
    assert drive(run) == []  # who passed is not seen by a snapshot before 60
    reader.now = 61
    held.pop()()
    assert len(drive(run)) == 3
    assert (reader.marks, reader.asked[1][1]) == (1, 250)


def test_a_busy_table_fills_nothing_while_it_waits_and_while_the_stream_is_behind() -> (
    None
):
    reader = Rows()
    reader.oldest = [39, 39, 39, 40]
    run = Run("public.t", TableRequest(), reader, at_once, ChunkLimits(entries=2))
    for turn in range(100):
        for key in "abcde":
            run.note(deleted(f"{turn}{key}"))
        reader.now = 61
        assert run.rows(PLACE - 1, lambda: 5, known) == []
    assert run.remark == "waits for the stream to reach 0/3E8"
    assert len(drive(run)) == 3
    assert (reader.marks, run.overflows, len(reader.asked)) == (1, 0, 1)


def test_what_was_said_before_a_chunk_has_to_be_seen_by_it() -> None:
    reader = Rows()
    run = Run("public.t", TableRequest(), reader, at_once)
    run.note(deleted("1"))  # in the stream, and not seen by others yet
    assert drive(run) == []
    assert len(reader.asked) > 1
    assert run.waits
    reader.now = 61
    assert len(drive(run)) == 3
    assert reader.marks == 1


def written(key: str, other: str) -> ReplicationOp:
    """Write a row, while the second column was the key."""
    before = Table("public", "t", ("id", "v"), key=(1,))
    return ReplicationOp(Kind.INSERT, before, 1, 0, new=[other, key])


def test_a_chunk_under_another_key_is_read_again_when_the_stream_has_that_key() -> None:
    reader = Rows()
    run = Run("public.t", TableRequest(), reader, at_once)
    for place in (PLACE - 20, PLACE - 10):
        assert drive(run, place=place) == []
        run.note(written("1", "9"))  # no word of row 1 of the chunk
    assert drive(run, place=PLACE - 1) == []
    assert (len(reader.asked), run.high) == (1, PLACE)
    assert [(op.new or ())[0] for op in drive(run)] == ["0", "1", "2"]
    assert (len(reader.asked), reader.marks) == (2, 1)


def test_a_key_that_stays_another_one_is_left_for_a_while() -> None:
    run = Run("public.t", TableRequest(), Rows(), at_once)
    assert drive(run, place=PLACE - 1) == []
    run.note(written("1", "9"))
    assert drive(run, place=PLACE - 1) == []
    run.rows(PLACE, lambda: None, known)
    run.note(written("1", "9"))
    with pytest.raises(Transient, match="other columns than its key"):
        drive(run)


def test_a_truncate_in_the_stream_ends_it() -> None:
    run = Run("public.t", TableRequest(), Rows(1200), at_once)
    drive(run, turns=1)
    truncate = ReplicationOp(Kind.TRUNCATE, table(), 1, 0)
    truncate.xid = 60
    run.note(truncate)
    assert drive(run) == []
    assert run.over


def test_ops_of_other_tables_say_nothing() -> None:
    run = Run("public.t", TableRequest(), Rows(1200), at_once)
    drive(run, turns=1)
    run.note(ReplicationOp(Kind.TRUNCATE, Table("s", "t", ("id",)), 1, 0))
    assert len(drive(run)) == 700


def test_a_replaced_table_is_truncated_first_and_watched_from_there() -> None:
    reader = Rows()
    run = Run("public.t", TableRequest(replace=True), reader, at_once)
    assert drive(run, place=PLACE - 1) == []
    (truncate,) = run.rows(PLACE, lambda: 4, known)
    assert (truncate.kind, truncate.snapshot) == (Kind.TRUNCATE, True)
    assert (truncate.lsn, truncate.seq_id) == (PLACE - 1, 4 << 32)
    assert run.wish.truncated
    assert len(drive(run)) == 3


@pytest.mark.parametrize("replace", [False, True])
def test_nothing_comes_in_before_the_sinks_know_where_it_goes(replace: bool) -> None:
    run = Run("public.t", TableRequest(replace=replace), Rows(), at_once)
    numbers: list[int] = []

    def number() -> int:
        numbers.append(5)
        return 5

    for place in range(PLACE, PLACE + 5):
        assert run.rows(place, number, lambda _: False) == []
    assert not run.wish.truncated
    place += 1
    first, *_ = run.rows(place, number, known)
    assert first.lsn == place - 1
    assert len(drive(run)) == 3 * replace


def test_chunks_have_as_many_rows_as_their_size_allows() -> None:
    small, large = Rows(20_000, size=10), Rows(1500, size=1 << 20)
    for reader in (small, large):
        drive(Run("public.t", TableRequest(), reader, at_once), turns=60)
    assert [most for _, most in small.asked] == [500, *[MOST_ROWS] * 4]
    assert [most for _, most in large.asked][:3] == [500, 4, 4]


def test_sinks_see_one_table_while_it_is_the_same() -> None:
    reader = Rows(1200)
    run = Run("public.t", TableRequest(), reader, at_once)
    ops = drive(run)
    assert len({id(op.table) for op in ops}) == 1
    assert len(ops) == 1200


def test_another_modifier_makes_it_another_table() -> None:
    """A decimal would be written with the scale of before."""
    reader = Rows(600)
    reader.modifiers = {("499",): (-1, 8)}
    ops = drive(Run("public.t", TableRequest(), reader, at_once))
    assert {op.table.modifiers for op in ops[:500]} == {()}
    assert {op.table.modifiers for op in ops[500:]} == {(-1, 8)}


def test_a_part_is_read_by_its_condition() -> None:
    reader = Rows(600)
    drive(Run("public.t", TableRequest(where="id > 5"), reader, at_once))
    assert reader.conditions == ["id > 5"] * 2
