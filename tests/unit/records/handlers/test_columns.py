"""Columns that are left out or renamed: rows, keys and what was not sent agree."""

from dataclasses import replace

import pytest

from walstream.errors import ConfigError
from walstream.op import ColumnFacts, Kind, ReplicationOp, Table
from walstream.records.handlers.columns import DropColumns, RenameColumns
from walstream.row import OMITTED, UNCHANGED

TABLE = Table("public", "t", ("a", "id", "b"), (1,), (25, 23, 25))


def update(old: list[object] | None, new: list[object]) -> ReplicationOp:
    op = ReplicationOp(Kind.UPDATE, TABLE, 8, 0)
    op.old, op.new, op.absent = old, new, True  # type: ignore[assignment] # rows
    return op


def test_a_dropped_column_is_in_no_row_and_no_table() -> None:
    handler = DropColumns(TABLE, {"columns": ["a"]})
    (op,) = handler.handle(update([OMITTED, "1", OMITTED], ["x", "1", UNCHANGED]))
    assert op.table.columns == ("id", "b")
    assert op.table.key == (0,)
    assert op.table.type_oids == (23, 25)
    assert list(op.old or ()) == ["1", OMITTED]
    assert list(op.new or ()) == ["1", UNCHANGED]
    assert op.absent


def test_what_was_not_sent_is_forgotten_with_its_column() -> None:
    handler = DropColumns(TABLE, {"columns": ["b", "unknown"]})
    (op,) = handler.handle(update(None, ["x", "1", UNCHANGED]))
    assert not op.absent
    assert op.old is None


def test_one_column_that_is_left_is_a_row() -> None:
    handler = DropColumns(TABLE, {"columns": ["a", "b"]})
    (op,) = handler.handle(update(["x", "10", "y"], ["x", "10", "z"]))
    assert list(op.new or ()) == ["10"]


def test_an_op_without_rows_passes() -> None:
    truncate = ReplicationOp(Kind.TRUNCATE, TABLE, 8, 0)
    (op,) = DropColumns(TABLE, {"columns": ["a"]}).handle(truncate)
    assert op.kind is Kind.TRUNCATE
    assert op.table.columns == ("id", "b")


def test_a_table_without_the_column_stays_what_it_is() -> None:
    handler = DropColumns(TABLE, {"columns": ["c"]})
    op = update(None, ["x", "1", "y"])
    assert list(handler.handle(op)) == [op]
    assert handler.table is TABLE


@pytest.mark.parametrize("columns", [["id"], ["a", "b", "id"]])
def test_a_key_column_is_not_dropped(columns: list[str]) -> None:
    with pytest.raises(ConfigError, match="part of its key"):
        DropColumns(TABLE, {"columns": columns})


def test_some_column_is_left() -> None:
    with pytest.raises(ConfigError, match="removes every column"):
        DropColumns(Table("public", "t", ("a",)), {"columns": ["a"]})


def test_a_renamed_column_keeps_its_place_and_is_known_by_its_old_name() -> None:
    handler = RenameColumns(TABLE, {"columns": {"id": "number"}})
    (op,) = handler.handle(update(None, ["x", "1", "y"]))
    assert op.table.columns == ("a", "number", "b")
    assert op.table.source_columns == TABLE.columns
    assert op.table.key == (1,)
    assert op.new == ["x", "1", "y"]


def test_names_may_be_exchanged() -> None:
    handler = RenameColumns(TABLE, {"columns": {"a": "b", "b": "a"}})
    assert handler.table.columns == ("b", "id", "a")


def test_two_columns_do_not_get_one_name() -> None:
    with pytest.raises(ConfigError, match=r"two columns called b"):
        RenameColumns(TABLE, {"columns": {"a": "b"}})


def test_facts_and_modifiers_stay_with_their_columns() -> None:
    facts = tuple(ColumnFacts(type_name=name) for name in ("a", "id", "b"))
    table = replace(TABLE, modifiers=(1, 2, 3), facts=facts)
    dropped = DropColumns(table, {"columns": ["a"]}).table
    assert (dropped.modifiers, dropped.facts) == ((2, 3), facts[1:])
    renamed = RenameColumns(table, {"columns": {"a": "x"}}).table
    assert (renamed.modifiers, renamed.facts) == ((1, 2, 3), facts)
