"""Columns of an op: all may be null, and keys have neither defaults nor NOT NULL."""

from dataclasses import replace

from tests.support.loads.registered_op import OPTIONS, TABLE, op
from walstream.formats.encodings.op.columns import OpColumns, known
from walstream.op import Kind
from walstream.row import OMITTED, UNCHANGED, Row


def test_all_may_be_null_and_a_key_has_no_default() -> None:
    columns = OpColumns(TABLE, OPTIONS)
    assert all(schema.optional for _, schema in columns.fields.values())
    assert not any(schema.default for _, schema in columns.fields.values())
    keys = dict(columns.key_fields.values())
    assert not keys["id"].optional  # of the table's key
    assert keys["v"].optional  # NOT NULL, which may go away
    assert not any(schema.default for schema in keys.values())
    assert columns.left_out == ()


def test_no_two_columns_are_spelled_alike() -> None:
    """Else a table of Japanese names, which `op` has no option for, would stop."""
    table = replace(TABLE, columns=("名前", "住所", "a b"))
    spelled = [name for name, _ in OpColumns(table, OPTIONS).fields.values()]
    assert spelled == ["_u540d_u524d", "_u4f4f_u6240", "a_b"]
    table = replace(TABLE, columns=("a b", "a_b", "é"))
    spelled = [name for name, _ in OpColumns(table, OPTIONS).fields.values()]
    assert spelled == ["a_u0020b", "a_b", "_"]


def test_rows_are_looked_into() -> None:
    columns = OpColumns(TABLE, OPTIONS)
    row: Row = ["1", UNCHANGED, "NaN"]
    assert columns.texts_of(row) == {"n": "NaN"}
    assert columns.texts_of(["1", "x", "1.5"]) == {}
    plain: Row = ["1", "x", None]
    assert columns.have_texts(row, None)
    assert columns.have_texts(plain, row)
    assert not columns.have_texts(plain, plain)
    assert not columns.have_texts(None, None)
    assert columns.texts_of(None) == {}
    assert columns.absent_of(row) == ["v"]
    assert columns.absent_of(None) == []
    one = op(Kind.INSERT, new=["1", OMITTED, None])
    one.absent = True
    assert known(one, one.new or ()) == ["1", None, None]
