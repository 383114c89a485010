"""A filter's readers hold the rows that match: whatever an update does to them."""

from typing import Any

import pytest

from walstream.errors import ConfigError, WalstreamError
from walstream.op import Kind, ReplicationOp, Table
from walstream.records.handlers.filter import Filter
from walstream.row import OMITTED, UNCHANGED, Row

TABLE = Table("public", "t", ("id", "tenant", "v"), (0,))
ALL = ["insert", "update", "delete", "truncate"]
MINE, OTHER = ["1", "a", "x"], ["1", "b", "x"]


def settings(**given: Any) -> dict[str, Any]:
    nothing: dict[str, Any] = {"equals": None, "one_of": None, "is_null": None}
    return {"operations": ALL, "column": "", **nothing, **given}


def by_value(**given: Any) -> Filter:
    return Filter(TABLE, settings(column="tenant", **(given or {"equals": "a"})))


def op(
    kind: Kind, old: Row | None = None, new: Row | None = None, **more: Any
) -> ReplicationOp:
    return ReplicationOp(kind, TABLE, 8, 4, old=old, new=new, **more)


@pytest.mark.parametrize("kind", Kind)
def test_operations_that_are_named_pass(kind: Kind) -> None:
    only = Filter(TABLE, settings(operations=[kind.value.lower()]))
    assert [one for one in Kind if list(only.handle(op(one)))] == [kind]


def test_a_backfills_truncate_passes() -> None:
    only = Filter(TABLE, settings(operations=["insert"]))
    assert list(only.handle(op(Kind.TRUNCATE, snapshot=True)))


@pytest.mark.parametrize(
    ("test", "passing"),
    [
        ({"equals": "a"}, ["a"]),
        ({"one_of": ["a", "b"]}, ["a", "b"]),
        ({"is_null": True}, [None]),
        ({"is_null": False}, ["a", "b", ""]),
    ],
)
def test_rows_pass_by_their_value(test: Any, passing: list[str | None]) -> None:
    handler = by_value(**test)
    rows = [["1", value, "x"] for value in ("a", "b", "", None)]
    inserted = [r[1] for r in rows if list(handler.handle(op(Kind.INSERT, new=r)))]
    deleted = [r[1] for r in rows if list(handler.handle(op(Kind.DELETE, old=r)))]
    assert inserted == deleted == passing


def test_a_truncate_passes_a_filter_by_value() -> None:
    assert list(by_value().handle(op(Kind.TRUNCATE)))


@pytest.mark.parametrize(
    ("old", "new", "kinds"),
    [
        (MINE, ["1", "a", "y"], [Kind.UPDATE]),
        (MINE, OTHER, [Kind.DELETE]),
        (OTHER, MINE, [Kind.INSERT]),
        (OTHER, ["1", "b", "y"], []),
        # an old row that does not show
        (None, MINE, [Kind.UPDATE]),
        (None, OTHER, [Kind.DELETE]),
        (["1", OMITTED, OMITTED], MINE, [Kind.UPDATE]),
        (MINE, ["1", UNCHANGED, "y"], [Kind.UPDATE]),
        (OTHER, ["1", UNCHANGED, "y"], []),
    ],
)
def test_an_update_is_what_it_means_to_the_readers(
    old: Row | None, new: Row, kinds: list[Kind]
) -> None:
    outs = list(by_value().handle(op(Kind.UPDATE, old, new)))
    assert [out.kind for out in outs] == kinds
    assert all((out.lsn, out.seq_id) == (8, 4) for out in outs)


def test_a_row_that_leaves_is_deleted_by_its_key() -> None:
    (out,) = by_value().handle(op(Kind.UPDATE, None, OTHER))
    assert out.old == ["1", OMITTED, OMITTED]
    assert out.new is None
    assert out.absent


def test_a_row_that_moved_its_key_comes_and_goes_under_the_numbers_it_has() -> None:
    moved = op(Kind.UPDATE, MINE, ["2", "b", "x"], key_changed=True)
    (left,) = by_value().handle(moved)
    assert (left.kind, left.seq_id, left.old) == (Kind.DELETE, 4, MINE)
    moved = op(Kind.UPDATE, OTHER, ["2", "a", "x"], key_changed=True)
    (came,) = by_value().handle(moved)
    assert (came.kind, came.seq_id, came.new) == (Kind.INSERT, 5, ["2", "a", "x"])
    assert not came.key_changed


def test_by_a_key_column_no_old_row_says_that_it_did_not_change() -> None:
    handler = Filter(TABLE, settings(column="id", equals="1"))
    assert list(handler.handle(op(Kind.UPDATE, None, ["2", "a", "y"]))) == []
    assert list(handler.handle(op(Kind.UPDATE, None, ["1", "a", "y"])))


def test_a_delete_that_does_not_tell_passes() -> None:
    assert list(by_value().handle(op(Kind.DELETE, ["1", OMITTED, OMITTED])))


@pytest.mark.parametrize(
    "silent",
    [
        op(Kind.UPDATE, None, ["1", UNCHANGED, "x"]),
        op(Kind.INSERT, None, ["1", UNCHANGED, "x"]),
    ],
)
def test_a_row_that_does_not_tell_is_refused(silent: ReplicationOp) -> None:
    with pytest.raises(WalstreamError, match="does not show"):
        list(by_value().handle(silent))


def test_a_table_without_the_column_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no column 'tenant'"):
        Filter(Table("public", "u", ("id",)), settings(column="tenant", equals="a"))
