"""A row of a table: nulls, values that were not sent, and what is refused."""

from typing import Any

import pytest

from tests.support.oracles.protobuf_values import read
from tests.unit.formats.encodings.avro.test_columns import rows as avro_rows
from walstream.errors import WalstreamError
from walstream.formats.debezium.columns import UNSENT
from walstream.formats.debezium.numeric import NO_NUMBER
from walstream.formats.debezium.options import UNAVAILABLE
from walstream.formats.encodings.protobuf import number, parsed_proto, proto_shape
from walstream.formats.encodings.protobuf.columns import ProtoColumns
from walstream.op import ColumnFacts, Kind, ReplicationOp
from walstream.row import OMITTED, UNCHANGED, NotSent, Row

INT8 = ColumnFacts(type_oid=20, type_name="int8")
TEXT = ColumnFacts(type_oid=25, type_name="text")
NUMERIC = ColumnFacts(type_oid=1700, type_name="numeric")
HEADER = 'syntax = "proto3"; package a; message Row {'


def rows(*facts: ColumnFacts, history: str = "", **options: Any) -> Any:
    """Return a function that writes a row, read by Google's library."""
    columns = avro_rows(*facts, **options).columns
    schema = columns.schema("a.Row")
    versions = [parsed_proto(history)] if history else []
    file = number(proto_shape(schema), versions)
    made = ProtoColumns(columns, file.first, [])

    def written(row: Row) -> Any:
        absent = any(isinstance(one, NotSent) for one in row)
        op = ReplicationOp(Kind.INSERT, columns.table, 5, 0, None, row, absent)
        return read(schema, file.text(), made.write(op, row))

    written.columns = columns  # type: ignore[attr-defined]
    return written


def _needed(oid: int, name: str, default: str | None = None) -> ColumnFacts:
    return ColumnFacts(not_null=True, default=default, type_oid=oid, type_name=name)


def test_a_row_has_its_columns() -> None:
    made = rows(INT8, TEXT, NUMERIC)
    found = made(["1", "2", "x", "1.50"])
    assert (found["id"], found["c0"], found["c1"]) == (1, 2, "x")
    assert str(found["c2"]) == "1.50"
    nulls = {"id": 1, "c0": None, "c1": None, "c2": None}
    assert made(["1", None, None, None]) == nulls


def test_defaults_of_what_is_never_null_are_no_bytes() -> None:
    """`read` sees that they are those that Google writes."""
    made = rows(_needed(20, "int8"), _needed(25, "text"), _needed(701, "float8"), INT8)
    for zero in ("0", "-0"):
        found = made(["0", "0", "", zero, "0"])
        assert (found["id"], found["c0"], found["c1"], found["c3"]) == (0, 0, "", 0)
        assert found["c2"] == ("0.0" if zero == "0" else "-0.0")


@pytest.mark.parametrize("old", ["c1", "c0"])
def test_fields_are_in_the_order_of_their_numbers(old: str) -> None:
    made = rows(INT8, TEXT, NUMERIC, history=f"{HEADER} string {old} = 1; }}")
    found = made(["1", "2", "x", None])
    assert (found["id"], found["c0"], found["c1"], found["c2"]) == (1, 2, "x", None)


def test_a_column_without_a_form_is_left_out() -> None:
    made = rows(ColumnFacts(type_oid=628, type_name="line"), TEXT)
    assert made(["1", "{1,2,3}", "x"]) == {"id": 1, "c1": "x"}


def test_what_was_not_sent_of_a_column_that_is_not_null_is_its_empty_value() -> None:
    made = rows(_needed(20, "int8", "7"), _needed(25, "text"), _needed(701, "float8"))
    row: list[Any] = ["1", OMITTED, OMITTED, OMITTED]
    assert made(row) == {"id": 1, "c0": 7, "c1": "", "c2": "0.0"}


def test_an_unchanged_value_is_the_placeholder_or_null_and_counted() -> None:
    made = rows(TEXT, NUMERIC, ColumnFacts(type_oid=17, type_name="bytea"))
    row: list[Any] = ["1", UNCHANGED, UNCHANGED, UNCHANGED]
    placeholder = {"c0": UNAVAILABLE, "c1": None, "c2": UNAVAILABLE.encode()}
    assert made(row) == {"id": 1, **placeholder}
    assert made.columns.lost == {("c1", UNSENT): 1}


def test_a_number_that_is_none_is_null_and_counted() -> None:
    made = rows(NUMERIC)
    assert made(["1", "NaN"]) == {"id": 1, "c0": None}
    assert made.columns.lost == {("c0", NO_NUMBER): 1}


@pytest.mark.parametrize("value", ["x", "9223372036854775808", 5, "1_0"])
@pytest.mark.parametrize("beside", [UNCHANGED, "x"])
def test_a_column_whose_text_is_none_of_its_type_is_named(
    value: Any, beside: Any
) -> None:
    with pytest.raises(WalstreamError, match="'c0'") as caught:
        rows(INT8, TEXT)(["1", value, beside])
    assert "1_0" not in str(caught.value)


def test_a_row_of_another_width_is_refused() -> None:
    with pytest.raises(WalstreamError, match="has 1 values for 2 columns"):
        rows(TEXT)(["1"])
