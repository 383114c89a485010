"""What is kept of the tables that are read beside the stream."""

from dataclasses import replace

import pytest

from walstream.errors import Transient
from walstream.sources.postgres.incremental.progress import (
    FIRST_CHUNK,
    IncrementalProgress,
    TableRequest,
    read,
    stored,
)
from walstream.sources.report import IncrementalReport
from walstream.testing import FailAfterWrite, MemoryStore, Reject, faulty


@pytest.fixture
def positions() -> MemoryStore:
    return MemoryStore()


def test_a_restart_finds_what_was_asked_and_how_far_it_is(
    positions: MemoryStore,
) -> None:
    progress = IncrementalProgress(positions)
    progress.ask(["s.a", "s.b"], replace=True)
    wish = progress.wishes()["s.a"]
    far = replace(wish, truncated=True, after=("1", "x"), key=("id", "k"), rows=5)
    progress.advance("s.a", far)
    again = IncrementalProgress(positions)
    assert list(again.wishes()) == ["s.a", "s.b"]
    assert again.wishes()["s.a"] == far
    again.finish("s.a", far)
    assert list(IncrementalProgress(positions).wishes()) == ["s.b"]


def test_no_chunks_number_comes_twice(positions: MemoryStore) -> None:
    first = IncrementalProgress(positions).numbers()
    assert first[0] == FIRST_CHUNK
    assert IncrementalProgress(positions).numbers()[0] == first[-1] + 1


def test_a_table_that_is_asked_for_while_it_is_read_is_read_once_more(
    positions: MemoryStore,
) -> None:
    """What was read before has no column that was added since."""
    progress = IncrementalProgress(positions)
    progress.ask(["s.a", "s.b"])
    wish = progress.wishes()["s.a"]
    progress.ask(["s.a"])
    assert progress.wishes()["s.a"] == wish  # none of it was read
    progress.reading = "s.a"
    progress.ask(["s.a"])
    assert progress.holds("s.a", wish)  # it goes on
    far = replace(wish, after=("1",), rows=1)
    progress.advance("s.a", far)
    again = IncrementalProgress(positions)
    assert again.wishes()["s.a"] == replace(far, again="")
    again.finish("s.a", far)
    assert again.rows == 0
    assert not again.holds("s.a", far)
    for found in again, IncrementalProgress(positions):
        assert list(found.wishes()) == ["s.b", "s.a"]  # it had its turn
        once_more = found.wishes()["s.a"]
        assert once_more == TableRequest(serial=once_more.serial)
    again.finish("s.a", again.wishes()["s.a"])
    assert list(IncrementalProgress(positions).wishes()) == ["s.b"]


def test_of_a_table_that_is_read_parts_are_read_once_more(
    positions: MemoryStore,
) -> None:
    progress = IncrementalProgress(positions)
    progress.ask(["s.a"])
    far = replace(progress.wishes()["s.a"], after=("1",))
    progress.advance("s.a", far)
    progress.ask(["s.a"], where="a")
    progress.ask(["s.a"], where="b")
    progress.finish("s.a", far)
    assert progress.wishes()["s.a"].where == "(a) OR (b)"


@pytest.mark.parametrize("error", ["", "it failed"])
def test_what_was_done_for_a_former_wish_counts_no_more(
    positions: MemoryStore, error: str
) -> None:
    progress = IncrementalProgress(positions)
    progress.ask(["s.a"])
    former = progress.wishes()["s.a"]
    if error:
        progress.fail("s.a", former, error)
    progress.ask(["s.a"], replace=not error)
    now = progress.wishes()["s.a"]
    assert not progress.holds("s.a", former)
    progress.advance("s.a", replace(former, after=("9",)))
    progress.fail("s.a", former, "late")
    progress.finish("s.a", former)
    assert progress.wishes()["s.a"] == now == TableRequest(not error, serial=now.serial)


def test_an_error_is_forgotten_when_the_table_goes_on(
    positions: MemoryStore,
) -> None:
    progress = IncrementalProgress(positions)
    progress.ask(["s.a"])
    wish = progress.wishes()["s.a"]
    progress.fail("s.a", wish, "no right")
    progress.advance("s.a", replace(wish, rows=1))  # sent before it failed
    assert progress.wishes()["s.a"].error == "no right"
    progress.reading = "s.a"
    progress.advance("s.a", replace(wish, rows=2))
    assert progress.wishes()["s.a"] == replace(wish, rows=2)


def test_it_tells_how_each_table_is(positions: MemoryStore) -> None:
    progress = IncrementalProgress(positions)
    progress.ask(["s.a", "s.b", "s.c", "s.d"])
    wishes = progress.wishes()
    progress.finish("s.a", replace(wishes["s.a"], rows=3))
    progress.advance("s.b", replace(wishes["s.b"], rows=2))
    progress.fail("s.c", wishes["s.c"], "no right")
    progress.reading = "s.b"
    expected = {
        "s.a": IncrementalReport(3, "done", ""),
        "s.b": IncrementalReport(2, "reading", ""),
        "s.c": IncrementalReport(0, "error", "no right"),
        "s.d": IncrementalReport(0, "waiting", ""),
    }
    assert progress.report() == expected
    at_rest = stored(read(positions))
    assert at_rest["s.b"].state == "waiting"
    assert stored(None) == {}


def test_the_first_that_is_meant_is_found_in_the_order_asked(
    positions: MemoryStore,
) -> None:
    progress = IncrementalProgress(positions)
    progress.ask(["s.c", "s.b", "s.a"])
    progress.finish("s.c", progress.wishes()["s.c"])
    progress.fail("s.b", progress.wishes()["s.b"], "no right")
    progress.ask(["s.d", "s.b"])
    for found in (
        progress,
        IncrementalProgress(positions),
    ):  # a restart finds the same order
        assert list(found.wishes()) == ["s.b", "s.a", "s.d"]
        first = found.first(lambda name, _: name < "s.b")
        assert first is not None
        assert first[0] == "s.a"
        assert found.first(lambda _, wish: wish.replace) is None


def test_a_part_is_kept_with_its_condition_and_joined_with_another(
    positions: MemoryStore,
) -> None:
    def where() -> str:
        return IncrementalProgress(positions).wishes()["s.a"].where

    progress = IncrementalProgress(positions)
    progress.ask(["s.a"], where="a")
    far = replace(progress.wishes()["s.a"], after=("1",))
    progress.advance("s.a", far)
    progress.ask(["s.a"], where="a")
    assert progress.wishes()["s.a"] == replace(far, again="a")  # it goes on
    assert progress.report()["s.a"].where == where() == "a"
    progress.ask(["s.a"], where="b")
    assert where() == "(a) OR (b)"
    assert progress.wishes()["s.a"].after is None  # rows of both, from the first on
    progress.ask(["s.a"])
    assert not where()
    whole = progress.wishes()["s.a"]
    progress.ask(["s.a"], where="c")
    assert progress.wishes()["s.a"] == whole


def test_a_condition_that_rows_cannot_be_read_by_is_not_joined(
    positions: MemoryStore,
) -> None:
    progress = IncrementalProgress(positions)
    progress.ask(["s.a"], where="a")
    progress.fail("s.a", progress.wishes()["s.a"], "no column", unfit=True)
    progress = IncrementalProgress(positions)
    progress.ask(["s.a"], where="b")
    wish = progress.wishes()["s.a"]
    assert wish == TableRequest(serial=wish.serial, where="b")
    # it fails for the moment, and is asked for beside another
    progress.fail("s.a", wish, "no connection")
    progress.ask(["s.a"], where="c")
    wish = progress.wishes()["s.a"]
    assert wish.where == "(b) OR (c)"
    progress.fail("s.a", wish, "no column", unfit=True)
    progress.reading = "s.a"  # the column is there by now
    progress.advance("s.a", wish)
    progress.ask(["s.a"], where="d")
    assert progress.wishes()["s.a"].where == "((b) OR (c)) OR (d)"


def test_what_could_not_be_written_is_not_believed(positions: MemoryStore) -> None:
    full = Reject(Transient("no space is left"))
    progress = IncrementalProgress(faulty(positions, write=[full, None, full, full]))
    with pytest.raises(Transient):
        progress.ask(["public.t"])
    assert not progress.wishes()
    progress.ask(["public.t"])  # by who was told that it failed
    assert IncrementalProgress(positions).wishes() == progress.wishes()
    (wish,) = progress.wishes().values()
    with pytest.raises(Transient):
        progress.advance("public.t", replace(wish, after=("7",), rows=7))
    with pytest.raises(Transient):
        progress.finish("public.t", wish)
    assert progress.wishes() == {"public.t": wish}
    assert progress.rows == 0
    progress.finish("public.t", wish)
    assert not IncrementalProgress(positions).wishes()


def advanced(positions: MemoryStore) -> tuple[IncrementalProgress, TableRequest]:
    """Ask for s.a, and keep how far it is, which fails; return that."""
    progress = IncrementalProgress(positions)
    progress.ask(["s.a"], replace=True)
    wish = progress.wishes()["s.a"]
    far = replace(wish, truncated=True, after=("1",), key=("id",), rows=1)
    with pytest.raises(Transient):
        progress.advance("s.a", far)
    return progress, far


def test_what_is_on_disk_is_believed_where_its_write_failed() -> None:
    """Else a second Truncate takes rows that the next start does not send again."""
    lost = FailAfterWrite(Transient("cannot write: EIO"))
    progress, far = advanced(faulty(MemoryStore(), write=[None, lost]))
    assert progress.wishes()["s.a"] == far


def test_what_is_on_disk_is_read_once_it_can_be() -> None:
    lost = Transient("cannot write: EIO")
    positions = faulty(
        MemoryStore(), write=[None, FailAfterWrite(lost)], tree=[None, Reject(lost)]
    )
    progress, far = advanced(positions)
    assert progress.first(lambda *_: True) == ("s.a", far)


def test_who_asks_is_told_where_it_is_read_though_the_write_failed() -> None:
    lost = Transient("cannot write: EIO", hint="free some space there")
    positions = faulty(MemoryStore(), write=[Reject(lost), FailAfterWrite(lost)])
    progress = IncrementalProgress(positions)
    with pytest.raises(Transient) as refused:
        progress.ask(["s.a"])
    assert refused.value.hint == "free some space there"
    with pytest.raises(Transient) as refused:
        progress.ask(["s.a"])
    assert refused.value.hint.startswith("the tables are read all the same: walstream")
    assert [*progress.wishes()] == [*IncrementalProgress(positions).wishes()] == ["s.a"]
