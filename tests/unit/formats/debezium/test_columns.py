"""Rows of a table: null, what was not sent, and what has no form."""

from typing import Any

import pytest

from walstream.errors import ConfigError, HistoryError, WalstreamError
from walstream.formats.debezium.columns import UNSENT, TableColumns
from walstream.formats.debezium.numeric import NO_NUMBER
from walstream.formats.debezium.options import DebeziumOptions
from walstream.op import ColumnFacts, Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED, Row

_NAMES = ("id", "n", "big", "nn", "arr", "line", "num")
_FACTS = (
    ColumnFacts(not_null=True, type_oid=23, type_name="int4"),
    ColumnFacts(not_null=True, default="7", type_oid=23, type_name="int4"),
    ColumnFacts(type_oid=25, type_name="text"),
    ColumnFacts(not_null=True, type_oid=25, type_name="text"),
    ColumnFacts(
        type_oid=1231, type_name="_numeric", element_oid=1700, element_name="numeric"
    ),
    ColumnFacts(type_oid=628, type_name="line"),
    ColumnFacts(type_oid=1700, type_name="numeric"),
)
_TABLE = Table("s", "t", _NAMES, (0,), (), facts=_FACTS)
_ROW = ["1", "2", "x", "y", "{1}", "{1,2,3}", "1.5"]


def columns(table: Table = _TABLE, **options: Any) -> TableColumns:
    return TableColumns(table, DebeziumOptions("app", **options))


def insert(row: Row, table: Table = _TABLE, *, absent: bool = False) -> ReplicationOp:
    return ReplicationOp(Kind.INSERT, table, 5, 3, new=row, absent=absent)


def test_a_row_is_an_object_without_columns_that_have_no_form() -> None:
    found = columns()
    assert found.left_out == ("line",)
    assert found.write(insert(_ROW), _ROW) == (
        '{"id":1,"n":2,"big":"x","nn":"y","arr":[{"scale":0,"value":"AQ=="}],'
        '"num":{"scale":1,"value":"Dw=="}}'
    )


def test_null_is_null_also_where_there_is_a_default() -> None:
    facts = (ColumnFacts(default="7", type_oid=23, type_name="int4"),)
    table = Table("s", "t", ("n",), facts=facts)
    found = columns(table)
    assert found.write(insert([None], table), [None]) == '{"n":null}'
    assert found.fields[0][1].default == "7"


def test_fields_are_optional_unless_not_null_or_of_the_key() -> None:
    fields = {name: schema.optional for name, schema in columns().fields.values()}
    assert fields == {
        "id": False, "n": False, "big": True, "nn": False, "arr": True, "num": True,
    }  # fmt: skip
    of_key = columns(Table("s", "t", ("a", "b"), (1,), (23, 23)))
    assert [schema.optional for _, schema in of_key.fields.values()] == [True, False]


def test_an_old_row_has_empty_values_where_null_is_not_allowed() -> None:
    row: Row = ["1", *[OMITTED] * 6]
    delete = ReplicationOp(Kind.DELETE, _TABLE, 5, 3, old=row, absent=True)
    assert columns().write(delete, row) == (
        '{"id":1,"n":7,"big":null,"nn":"","arr":null,"num":null}'
    )


@pytest.mark.parametrize("absent", [False, True])
def test_a_null_that_is_not_allowed_is_an_empty_value(absent: bool) -> None:
    """The column was altered since, or a large value was gone when it was read."""
    row: Row = ["1", None, None, None, None, None, None]
    assert columns().write(insert(row, absent=absent), row) == (
        '{"id":1,"n":7,"big":null,"nn":"","arr":null,"num":null}'
    )


def test_an_unchanged_value_has_its_placeholder_or_is_counted() -> None:
    row: Row = ["1", "2", UNCHANGED, UNCHANGED, UNCHANGED, None, None]
    found = columns()
    assert found.write(insert(row, absent=True), row) == (
        '{"id":1,"n":2,"big":"__debezium_unavailable_value",'
        '"nn":"__debezium_unavailable_value","arr":null,"num":null}'
    )
    assert found.lost == {("arr", UNSENT): 1}


def test_values_without_a_form_are_counted_by_column() -> None:
    found = columns()
    for text in ("NaN", "Infinity"):
        row = [*_ROW[:-1], text]
        assert found.write(insert(row), row).endswith('"num":null}')
    assert found.lost == {("num", NO_NUMBER): 2}


def test_one_that_may_not_be_null_stops_with_its_column() -> None:
    facts = (ColumnFacts(not_null=True, type_oid=1700, type_name="numeric"),)
    table = Table("s", "t", ("n",), facts=facts)
    with pytest.raises(HistoryError, match=r"'n' of table 's\.t' is NOT NULL") as told:
        columns(table).write(insert(["NaN"], table), ["NaN"])
    assert told.value.hint.startswith('set decimal = "string"')
    assert told.value.hint.endswith("then: walstream run")
    text = columns(table, decimal="string").write(insert(["NaN"], table), ["NaN"])
    assert text == '{"n":"NAN"}'


@pytest.mark.parametrize("absent", [False, True])
def test_a_text_of_another_type_names_column_and_op_and_no_value(absent: bool) -> None:
    row = ["1", "secret", *_ROW[2:]]
    with pytest.raises(WalstreamError) as told:
        columns().write(insert(row, absent=absent), row)
    assert "'n' of table 's.t', op (0/5, 3)" in str(told.value)
    assert "not an integer" in str(told.value)
    assert "secret" not in str(told.value)


def test_a_date_that_python_refuses_is_not_quoted() -> None:
    table = Table("s", "t", ("d",), (), (1082,))
    with pytest.raises(WalstreamError) as told:
        columns(table).write(insert(["2020-13-77"], table), ["2020-13-77"])
    assert "2020" not in str(told.value)


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize(("index", "column"), [(0, "id"), (2, "big"), (6, "num")])
def test_what_is_not_a_text_is_refused_by_its_column(
    index: int, column: str, absent: bool
) -> None:
    row: list[Any] = [*_ROW]
    row[index] = 5  # a handler's
    with pytest.raises(WalstreamError, match=f"column '{column}'.*: no text"):
        columns().write(insert(row, absent=absent), row)


@pytest.mark.parametrize("row", [["1"], [*_ROW, "x"]])
def test_a_row_of_another_width_is_refused(row: list[str]) -> None:
    with pytest.raises(WalstreamError, match=f"has {len(row)} values for 7 columns"):
        columns().write(insert(row), row)


def test_two_columns_of_one_field_are_refused() -> None:
    table = Table("s", "t", ("a b", "a_b"), (), (25, 25))
    with pytest.raises(ConfigError, match="the field a_b"):
        columns(table, adjust_fields="avro")
    assert len(columns(table).fields) == 2


def test_only_texts_may_be_stood_in_for() -> None:
    assert columns().texts == {2, 3}


def test_a_name_may_have_any_character() -> None:
    table = Table("s", "t", ('%s"', "%"), (), (23, 23))
    assert columns(table).write(insert(["1", "2"], table), ["1", "2"]) == (
        '{"%s\\"":1,"%":2}'
    )
