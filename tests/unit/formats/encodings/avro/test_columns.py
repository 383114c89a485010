"""A row of a table: nulls, values that were not sent, and what is refused."""

from typing import Any

import pytest

from tests.support.oracles.avro_values import comparable, meant
from tests.support.oracles.debezium_avro import read
from walstream.errors import WalstreamError
from walstream.formats.debezium.columns import UNSENT, TableColumns
from walstream.formats.debezium.connect_type import NO_NULL
from walstream.formats.debezium.numeric import NO_NUMBER
from walstream.formats.debezium.options import UNAVAILABLE, DebeziumOptions
from walstream.formats.encodings.avro import avro_schema
from walstream.formats.encodings.avro.columns import AvroColumns
from walstream.op import ColumnFacts, Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED, NotSent, Row


def rows(*facts: ColumnFacts, **options: Any) -> AvroColumns:
    """Return the writer of a table with these columns behind its key."""
    every = (ColumnFacts(not_null=True, type_oid=20, type_name="int8"), *facts)
    names = ("id", *(f"c{number}" for number in range(len(facts))))
    oids = tuple(one.type_oid for one in every)
    table = Table("s", "t", names, (0,), oids, facts=every)
    return AvroColumns(TableColumns(table, DebeziumOptions("app", **options)))


def written(made: AvroColumns, row: Row) -> Any:
    """Return what a row says; JSON has to say the same."""
    absent = any(isinstance(one, NotSent) for one in row)
    table = made.columns.table
    op = ReplicationOp(Kind.INSERT, table, 5, 0, None, row, absent)
    schema = made.columns.schema("a.Row")
    return comparable(read(avro_schema(schema), made.write(op, row)))


INT8 = ColumnFacts(type_oid=20, type_name="int8")
TEXT = ColumnFacts(type_oid=25, type_name="text")
NUMERIC = ColumnFacts(type_oid=1700, type_name="numeric")


def _needed(oid: int, name: str, default: str | None = None) -> ColumnFacts:
    return ColumnFacts(not_null=True, default=default, type_oid=oid, type_name=name)


def test_a_row_has_its_columns_in_the_tables_order() -> None:
    made = rows(INT8, TEXT, NUMERIC)
    assert written(made, ["1", "2", "x", "1.50"]) == {
        "id": 1, "c0": 2, "c1": "x", "c2": {"scale": 1, "value": b"\x0f"},
    }  # fmt: skip
    nulls = {"id": 1, "c0": None, "c1": None, "c2": None}
    assert written(made, ["1", None, None, None]) == nulls


def test_a_column_without_a_form_is_left_out() -> None:
    made = rows(ColumnFacts(type_oid=628, type_name="line"), TEXT)
    assert written(made, ["1", "{1,2,3}", "x"]) == {"id": 1, "c1": "x"}


def test_a_null_of_a_column_with_a_default_is_null() -> None:
    made = rows(ColumnFacts(default="7", type_oid=20, type_name="int8"))
    assert written(made, ["1", None])["c0"] is None
    assert written(made, ["1", "8"])["c0"] == 8


def test_what_was_not_sent_of_a_column_that_is_not_null_is_its_empty_value() -> None:
    made = rows(_needed(20, "int8", "7"), _needed(25, "text"), _needed(701, "float8"))
    row: list[Any] = ["1", OMITTED, OMITTED, OMITTED]
    assert written(made, row) == {"id": 1, "c0": 7, "c1": "", "c2": "0.0"}


def test_an_unchanged_value_is_the_placeholder_or_null_and_counted() -> None:
    made = rows(TEXT, NUMERIC, ColumnFacts(type_oid=17, type_name="bytea"))
    row: list[Any] = ["1", UNCHANGED, UNCHANGED, UNCHANGED]
    placeholder = {"c0": UNAVAILABLE, "c1": None, "c2": UNAVAILABLE.encode()}
    assert written(made, row) == {"id": 1, **placeholder}
    assert made.columns.lost == {("c1", UNSENT): 1}


def test_values_beside_one_that_was_not_sent_are_written() -> None:
    row: list[Any] = ["1", UNCHANGED, None, "1.5"]
    found = written(rows(TEXT, TEXT, NUMERIC), row)
    assert (found["c1"], found["c2"]) == (None, {"scale": 1, "value": b"\x0f"})


def test_no_number_is_null_and_counted_and_refused_where_it_is_not_null() -> None:
    made = rows(NUMERIC)
    assert written(made, ["1", "NaN"])["c0"] is None
    assert made.columns.lost == {("c0", NO_NUMBER): 1}
    with pytest.raises(WalstreamError, match="is NOT NULL"):
        written(rows(_needed(1700, "numeric")), ["1", "NaN"])


def test_nulls_in_arrays_of_labels_are_counted_by_column() -> None:
    facts = ColumnFacts(
        type_oid=17_001,
        type_name="_mood",
        element_oid=17_000,
        element_name="mood",
        labels=("sad",),
    )
    made = rows(facts)
    assert written(made, ["1", "{sad,NULL}"])["c0"] == ["sad", ""]
    assert made.columns.lost == {("c0", NO_NULL): 1}


def test_a_geometry_may_be_null_in_its_schema_where_it_is_not_null() -> None:
    facts = _needed(17_000, "geometry")
    made = rows(facts)
    row: list[Any] = ["1", OMITTED]
    schema = made.columns.fields[1][1]
    empty = meant(schema, {"wkb": "AQcAAAAAAAAA", "srid": None})
    assert written(made, row)["c0"] == empty


@pytest.mark.parametrize("value", ["x", "9223372036854775808", 5, "1_0"])
@pytest.mark.parametrize("beside", [UNCHANGED, "x"])
def test_a_column_whose_text_is_none_of_its_type_is_named(
    value: Any, beside: Any
) -> None:
    with pytest.raises(WalstreamError, match="'c0'") as caught:
        written(rows(INT8, TEXT), ["1", value, beside])
    assert "1_0" not in str(caught.value)


def test_a_row_of_another_width_is_refused() -> None:
    with pytest.raises(WalstreamError, match="has 1 values for 2 columns"):
        written(rows(TEXT), ["1"])
