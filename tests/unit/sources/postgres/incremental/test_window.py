"""What the stream said of a table's rows, and what of a chunk readers need then."""

from typing import Any

import pytest

from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED, Row
from walstream.sources.postgres.incremental.chunk import (
    KeyChunk,
    Visibility,
)
from walstream.sources.postgres.incremental.window import Window

TABLE = Table("public", "t", ("id", "n", "big"), key=(0,))


def op(
    kind: Kind, new: Row | None = None, old: Row | None = None, **fields: Any
) -> ReplicationOp:
    absent = any(
        value in {OMITTED, UNCHANGED} for value in (*(new or ()), *(old or ()))
    )
    made = ReplicationOp(kind, fields.pop("table", TABLE), 1, 0, old, new, absent)
    made.xid = fields.pop("xid", 7)
    made.key_changed = fields.pop("key_changed", False)
    return made


def needed(window: Window, *rows: list[str | None], xmax: int = 7) -> list[Row]:
    chunk = KeyChunk(TABLE, list(rows), (0,), Visibility(xmax), 0, last=True)
    return [row for _, _, row in window.rows(chunk, 0, len(rows))]


@pytest.mark.parametrize(
    "said",
    [
        op(Kind.INSERT, ["1", "2", "b"]),
        op(Kind.UPDATE, ["1", "2", "b"]),
        op(Kind.DELETE, old=["1", OMITTED, OMITTED]),
        op(Kind.UPDATE, ["9", "2", "b"], ["1", OMITTED, OMITTED], key_changed=True),
        op(Kind.UPDATE, ["1", "2", "b"], ["9", OMITTED, OMITTED], key_changed=True),
    ],
    ids=["insert", "update", "delete", "moved away", "moved here"],
)
def test_a_row_that_readers_have_whole_or_not_at_all_is_left_out(
    said: ReplicationOp,
) -> None:
    window = Window()
    window.note(said)
    assert needed(window, ["1", "1", "a"], ["2", "1", "a"]) == [["2", "1", "a"]]


def test_what_was_not_sent_of_a_row_is_filled_from_the_chunk() -> None:
    window = Window()
    window.note(op(Kind.UPDATE, ["1", "2", UNCHANGED]))
    window.note(op(Kind.UPDATE, ["1", "3", UNCHANGED]))
    assert needed(window, ["1", "1", "a"]) == [["1", "3", "a"]]


def test_a_row_that_the_snapshot_saw_last_is_as_the_chunk_has_it() -> None:
    window = Window()
    window.note(op(Kind.UPDATE, ["1", "2", UNCHANGED]))
    assert needed(window, ["1", "5", "c"], xmax=8) == [["1", "5", "c"]]


def test_what_readers_have_whole_stays_so_when_only_a_part_follows() -> None:
    window = Window()
    window.note(op(Kind.UPDATE, ["1", "2", "b"]))
    window.note(op(Kind.UPDATE, ["1", "3", UNCHANGED]))
    assert needed(window, ["1", "1", "a"]) == []


def test_no_older_row_fills_an_insert_that_a_row_filter_made() -> None:
    window = Window()
    window.note(op(Kind.DELETE, old=["1", OMITTED, OMITTED], xid=7))
    window.note(op(Kind.INSERT, ["1", "3", UNCHANGED], xid=8))
    assert needed(window, ["1", "1", "a"], xmax=7) == []
    assert needed(window, ["1", "3", "b"], xmax=9) == [["1", "3", "b"]]


def test_a_row_is_filled_by_the_names_of_its_columns() -> None:
    window = Window()
    altered = Table("public", "t", ("id", "big", "more"), key=(0,))
    window.note(op(Kind.UPDATE, ["1", "2", UNCHANGED]))
    window.note(op(Kind.UPDATE, ["1", UNCHANGED, "m"], table=altered))
    chunk = KeyChunk(TABLE, [["1", "1", "a"]], (0,), Visibility(7), 0, last=True)
    assert list(window.rows(chunk, 0, 1)) == [(0, altered, ["1", "a", "m"])]


def test_only_what_a_chunk_has_and_did_not_see_is_kept() -> None:
    window = Window()
    chunk = KeyChunk(
        TABLE, [["1", "9", "z"], ["2", "1", "a"]], (0,), Visibility(8), 0, True
    )
    window.note(op(Kind.UPDATE, ["1", "2", UNCHANGED], xid=7))
    window.note(op(Kind.UPDATE, ["2", "2", "b"], xid=8))
    window.note(op(Kind.UPDATE, ["3", "2", "b"], xid=8))
    window.focus(chunk)
    assert len(window) == 1
    assert [row for _, _, row in window.rows(chunk, 0, 2)] == [["1", "9", "z"]]
    for key in "456789":
        window.note(op(Kind.UPDATE, [key, "2", UNCHANGED], xid=9))
    window.note(op(Kind.DELETE, old=["1", OMITTED, OMITTED], xid=7))
    assert len(window) == 1
    window.note(op(Kind.DELETE, old=["1", OMITTED, OMITTED], xid=9))
    assert list(window.rows(chunk, 0, 2)) == []


def test_too_many_rows_or_too_large_ones_void_it() -> None:
    many, large = Window(most_entries=2), Window(most_size=20)
    for key in "123":
        assert not many.void
        many.note(op(Kind.DELETE, old=[key, OMITTED, OMITTED]))
    large.note(op(Kind.UPDATE, ["1", "2" * 10, UNCHANGED]))
    large.note(op(Kind.UPDATE, ["1", "3" * 12, UNCHANGED]))
    assert not large.void
    large.note(op(Kind.UPDATE, ["2", "2" * 10, UNCHANGED]))
    assert (many.void, large.void) == (True, True)
    assert (len(many), len(large)) == (0, 0)


def test_another_key_voids_it_and_disagrees_with_the_chunk() -> None:
    window = Window()
    other = Table("public", "t", TABLE.columns, key=(1,))
    chunk = KeyChunk(other, [], (1,), Visibility(7), 0, last=True)
    assert window.agrees(chunk)
    window.note(op(Kind.INSERT, ["1", "2", "b"]))
    assert not window.agrees(chunk)
    window.note(op(Kind.INSERT, ["1", "2", "b"], table=other))
    assert window.void


def test_a_key_that_was_not_sent_again_stands_in_the_old_row() -> None:
    window = Window()
    window.note(op(Kind.UPDATE, [UNCHANGED, "2", "b"], ["1", OMITTED, OMITTED]))
    assert needed(window, ["1", "1", "a"]) == [["1", "2", "b"]]
