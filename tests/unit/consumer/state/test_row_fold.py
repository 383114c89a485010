"""Which values are kept, and of which columns they are no more."""

import pytest

from consumer.state.row_fold import (
    KeptValues,
    RowChange,
    RowFold,
    change_of,
    renewed,
    wanted,
)
from consumer.state.row_keys import RowName
from tests.support.loads.op import make
from walstream.op import Kind

T = "shop.docs"
KEY = ("id",)
ONE = RowName(T, '["1"]')
LONG = "x" * 600


@pytest.mark.parametrize(
    ("before", "after", "gone", "doubted"),
    [
        ("abc", "abcd", "", ""),
        ("abc", "ac", "b", "ac"),  # either may have been dropped, and b renamed
        ("abc", "ab", "c", "b"),
        ("abc", "bc", "a", "b"),
        ("abcde", "abde", "c", "bd"),
        ("abc", "axc", "b", ""),  # a new name
        ("abcd", "axd", "bc", "ad"),
        ("abc", "abx", "c", "b"),  # x may be a new column
        ("abc", "acb", "bc", "a"),  # b was dropped, and added again
        ("abc", "abxc", "c", "b"),  # c was, behind the new one
        ("abcd", "acxd", "bd", "ac"),  # likewise, where another one went away before
        ("abc", "", "abc", ""),
    ],
)
def test_columns_that_came_anew_are_told_by_their_place(
    before: str, after: str, gone: str, doubted: str
) -> None:
    assert renewed(before, after) == (set(gone), set(doubted))


def test_a_value_is_unknown_where_a_column_that_was_kept_may_have_its_name() -> None:
    two = RowName(T, '["2"]')
    kept = KeptValues(
        {ONE: {"a": "old", "b": LONG}, two: {"a": LONG}}, {T: ("id", "a", "b")}
    )
    fold = RowFold(kept)
    ops = [
        make(Kind.UPDATE, T, new={"id": number}, columns=["id", "a"])
        for number in ("1", "2")
    ]
    found = [fold.take(change_of(op, KEY)) for op in ops]
    assert found == [{}, {"a": LONG}]
    assert fold.changes.dropped == {T: {"b"}}
    assert fold.changes.doubted == {T: {"a"}}


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        ({"id": "1", "a": LONG, "b": "short"}, {"a"}),
        ({"id": "1", "a": LONG, "b": "y" * 21}, {"a", "b"}),
        ({"id": "1", "a": LONG, "b": "y" * 20}, {"a"}),
        ({"id": "1", "a": LONG, "b": "é" * 11}, {"a", "b"}),  # 22 bytes
        ({"id": "1", "a": LONG, "b": None}, {"a"}),
        ({"id": "1", "a": "y" * 400, "b": "y" * 98}, set[str]()),  # never toasted
        ({"id": "1", "a": "y" * 400, "b": "y" * 99}, {"a", "b"}),  # 500 in all
        ({"id": "1", "a": LONG, "b": "é" * 10}, {"a"}),  # 20 bytes
        ({"id": LONG, "a": "y" * 21}, {"a"}),  # the key is in each op
    ],
)
def test_what_postgresql_may_leave_out_is_kept(
    row: dict[str, str | None], kept: set[str]
) -> None:
    change = change_of(make(Kind.INSERT, T, new=row), KEY)
    fold = RowFold(KeptValues())
    fold.take(change)
    assert {column for _, column, _ in fold.changes.put} == kept


def test_values_are_read_for_what_left_some_out_alone() -> None:
    ops = [
        make(Kind.UPDATE, T, new={"id": "1", "a": LONG}),
        make(Kind.UPDATE, T, new={"id": "2"}, columns=["id", "a"]),
        make(Kind.INSERT, T, new={"id": "3"}, columns=["id", "a"]),
        make(Kind.DELETE, T, old={"id": "4"}, columns=["id", "a"]),
    ]
    names = wanted(change_of(op, KEY) for op in ops)
    assert [name.key for name in names] == ['["1"]', '["2"]', '["3"]', '["4"]']
    assert list(names.values()) == [False, True, False, False]


def test_what_is_stored_already_is_not_written_again() -> None:
    kept = KeptValues({ONE: {"a": LONG, "b": None}}, {T: ("id", "a", "b", "c")})
    fold = RowFold(kept)
    op = make(
        Kind.UPDATE, T, new={"id": "1", "b": LONG, "c": "c"}, columns=kept.shapes[T]
    )
    assert fold.take(change_of(op, KEY)) == {"a": LONG}
    assert fold.changes.put == [(ONE, "b", LONG)]
    assert not fold.changes.removed
    assert not fold.changes.shapes


def test_an_insert_is_not_filled() -> None:
    """A row filter made one of an UPDATE: what was kept is of another row."""
    fold = RowFold(KeptValues({ONE: {"a": LONG}}))
    change = change_of(make(Kind.INSERT, T, new={"id": "1"}, columns=["id", "a"]), KEY)
    assert fold.take(change) == {}
    assert fold.changes.removed == [(ONE, "a")]


def test_what_was_not_read_for_want_of_memory_is_told() -> None:
    fold = RowFold(KeptValues({ONE: {"a": None}}))
    op = make(Kind.UPDATE, T, new={"id": "1"}, columns=["id", "a"])
    assert fold.take(change_of(op, KEY)) is None


def test_a_row_that_moved_is_known_under_its_new_key() -> None:
    fold = RowFold(KeptValues({ONE: {"a": LONG}}))
    columns = ["id", "a"]
    moved = make(Kind.UPDATE, T, old={"id": "1"}, new={"id": "2"}, columns=columns)
    assert fold.take(change_of(moved, KEY)) == {"a": LONG}
    assert fold.changes.removed == [(ONE, "a")]
    assert fold.changes.put == [(RowName(T, '["2"]'), "a", LONG)]


def test_an_insert_that_lacks_values_asks_for_no_row() -> None:
    fold = RowFold(KeptValues())
    change = RowChange(
        Kind.INSERT, T, ("id", "a"), None, ONE, frozenset({"a"}), {"id": "1"}
    )
    assert fold.take(change) == {}


def test_a_truncate_forgets_the_rows_of_its_table_alone() -> None:
    other = RowName("shop.other", '["1"]')
    fold = RowFold(KeptValues({ONE: {"a": LONG}, other: {"a": LONG}}, layouts={T: 3}))
    columns = ("id", "a")
    truncated = RowChange(
        Kind.TRUNCATE, T, columns, None, None, frozenset(), {}, layout=4
    )
    assert fold.take(truncated) == {}
    lacking = frozenset({"a"})
    for name, known in ((ONE, {}), (other, {"a": LONG})):
        change = RowChange(
            Kind.UPDATE, name.table, columns, name, name, lacking, {}, layout=4
        )
        assert fold.take(change) == known
    changes = fold.changes
    assert changes.emptied == {T}
    assert changes.layouts == {T: 4, "shop.other": 4}
    assert not changes.removed  # they went with the table


@pytest.mark.parametrize(
    ("layout", "of_all", "forgets"),
    [(4, False, False), (5, False, True), (5, True, False)],
)
def test_the_second_change_of_the_layout_forgets_a_table(
    layout: int, *, of_all: bool, forgets: bool
) -> None:
    """A row may have moved away and back; not where all partitions are kept."""
    kept = KeptValues({ONE: {"a": LONG}}, {T: ("id", "a")}, {T: 3})
    fold = RowFold(kept, of_all=of_all)
    change = RowChange(
        Kind.UPDATE, T, ("id", "a"), ONE, ONE, frozenset({"a"}), {}, layout=layout
    )
    assert fold.take(change) == ({} if forgets else {"a": LONG})
    assert fold.changes.emptied == ({T} if forgets else set())
    assert fold.changes.layouts == ({T: layout} if forgets else {})


def test_by_default_those_of_one_partition_are_kept() -> None:
    fold = RowFold(KeptValues({ONE: {"a": LONG}}, layouts={T: 1}))
    change = RowChange(
        Kind.UPDATE, T, ("id", "a"), ONE, ONE, frozenset({"a"}), {}, layout=3
    )
    assert fold.take(change) == {}
