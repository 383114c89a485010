"""Rows in each encoding: who reads them gets what JSON says, whoever it is."""

import math
import string
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.loads.polled_row import (
    AT,
    ENCODINGS,
    Rows,
    columns,
    made,
    read,
    spec,
    stranger,
)
from walstream.errors import ConfigError
from walstream.formats.encodings.row.column import RowColumn, RowColumnType
from walstream.formats.encodings.row.encoder import RegisteredRows
from walstream.formats.row import decode

TYPES = {
    "boolean": RowColumnType("boolean"),
    "bytes": RowColumnType("bytes"),
    "date": RowColumnType("date"),
    "decimal": RowColumnType("decimal", 6, 2),
    "double": RowColumnType("double"),
    "int16": RowColumnType("int16"),
    "int32": RowColumnType("int32"),
    "int64": RowColumnType("int64"),
    "json": RowColumnType("json"),
    "string": RowColumnType("string"),
    "time": RowColumnType("time"),
    "timestamp": RowColumnType("timestamp"),
    "uuid": RowColumnType("uuid"),
    "zoned": RowColumnType("zoned"),
    "numbers": RowColumnType("array", items=RowColumnType("int32")),
    "prices": RowColumnType("array", items=RowColumnType("decimal", 6, 2)),
}
USUAL: dict[str, Any] = {
    "boolean": True,
    "bytes": b"\0\xff",
    "date": date(2020, 2, 29),
    "decimal": Decimal("-12.50"),
    "double": 1.5,
    "int16": -3,
    "int32": 1 << 30,
    "int64": -1 << 63,
    "json": {"a": [1, None, 2.5]},
    "string": "é",
    "time": time(3, 4, 5, 600_000),
    "timestamp": datetime(2020, 1, 2, 3, 4, 5, 678),  # noqa: DTZ001
    "uuid": UUID("5bdc360e-91a6-5062-9c7d-94cceabcc7ec"),
    "zoned": datetime(2020, 1, 2, tzinfo=UTC),
    "numbers": [1, None, 3],
    "prices": [Decimal("1.50"), None],
}

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 70), 1 << 70),
    st.floats(),
    st.text(),
    st.text(alphabet=st.characters(categories=["Cs", "L"]), max_size=3),
    st.binary(max_size=8),
    st.decimals(),
    st.decimals(min_value=-9999, max_value=9999, places=2),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.datetimes(timezones=st.just(UTC)),
    st.datetimes(timezones=st.just(timezone(timedelta(hours=-5, minutes=-30)))),
    st.timedeltas(),
    st.uuids(),
)
values = st.one_of(
    scalars,
    st.lists(scalars, max_size=3),
    st.dictionaries(st.text(string.ascii_letters, max_size=3), scalars, max_size=2),
    st.sets(st.integers(), max_size=3),
)

_MADE: dict[tuple[str, bool], Rows] = {}


def rows_of(encoding: str, *, required: bool = False) -> Rows:
    """Make an encoder once: its schema takes longer than its rows."""
    found = _MADE.get((encoding, required))
    if found is None:
        told = [
            RowColumn(one.name, one.type, required or one.required)
            for one in columns(**TYPES)
        ]
        found = _MADE[encoding, required] = made(encoding, spec(tuple(told), encoding))
    return found


def same(one: Any, other: Any) -> bool:
    return repr(one) == repr(other)


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(row=st.tuples(*[values] * len(TYPES)), required=st.booleans())
def test_any_row_reads_back_as_json_says(
    encoding: str, row: tuple[Any, ...], *, required: bool
) -> None:
    rows = rows_of(encoding, required=required)
    whole = (7, *row)
    (record,) = rows.write(whole)
    (plain,) = rows.hashes.encode([whole], AT)
    assert same(read(rows, record), decode(plain))
    assert same(read(rows, record).data, decode(plain).data)
    assert stranger(rows, record)["data"]["id"] == 7


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_usual_values_have_their_types(encoding: str) -> None:
    rows = rows_of(encoding)
    (record,) = rows.write((1, *USUAL.values()))
    found = stranger(rows, record)
    assert found["texts"] is None
    data = found["data"]
    assert data["time"] == 11_045_600_000
    assert data["timestamp"] == 1_577_934_245_000_678
    assert data["date"] == 18_321
    assert data["zoned"] == "2020-01-02T00:00:00Z"
    assert data["uuid"] == "5bdc360e-91a6-5062-9c7d-94cceabcc7ec"
    assert data["json"] == '{"a":[1,null,2.5]}'
    assert data["numbers"] == [1, None, 3]
    if encoding == "avro":
        assert data["decimal"] == Decimal("-12.50")
        assert data["bytes"] == b"\0\xff"


def test_what_a_type_does_not_hold_stands_beside_the_row() -> None:
    rows = rows_of("avro")
    odd = {**USUAL, "date": "0000-00-00", "int32": 1 << 40, "string": 5}
    found = stranger(rows, *rows.write((1, *odd.values())))
    assert (found["data"]["date"], found["data"]["int32"]) == (None, None)
    assert found["data"]["string"] == "5"
    assert found["texts"] == {
        "date": '"0000-00-00"',
        "int32": "1099511627776",
        "string": "5",
    }


def test_a_column_that_is_never_null_has_an_empty_value_there() -> None:
    rows = rows_of("avro", required=True)
    odd = {**USUAL, "date": "0000-00-00", "int32": None}
    found = stranger(rows, *rows.write((1, *odd.values())))
    assert found["data"]["date"] == 0
    assert found["texts"] == {"date": '"0000-00-00"', "int32": "null"}


def test_no_number_fits_no_number_of_a_validator() -> None:
    nan = {**USUAL, "double": math.nan}
    found = [
        stranger(rows, *rows.write((1, *nan.values())))
        for rows in map(rows_of, ENCODINGS)
    ]
    assert [one["texts"] for one in found] == [None, {"double": '"NaN"'}, None]


def test_rows_among_odd_ones_are_what_they_are_alone() -> None:
    rows = rows_of("avro")
    usual = (1, *USUAL.values())
    odd = (2, *({**USUAL, "int16": "x"}.values()))
    together = rows.write(usual, odd, usual)
    assert together == [*rows.write(usual), *rows.write(odd), *rows.write(usual)]
    assert rows.write() == []


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_key_has_a_schema_of_its_own(encoding: str) -> None:
    rows = rows_of(encoding)
    key = rows.encoder.key(1 << 62)
    assert stranger(rows, key) == {"id": 1 << 62}
    assert stranger(rows, rows.encoder.key(-1 << 63)) == {"id": -1 << 63}
    with pytest.raises(ConfigError, match="no room"):
        rows.encoder.key(1 << 63)


def test_names_that_are_one_in_protobufs_json_are_refused() -> None:
    text = RowColumnType("string")
    told = spec(columns(a_1=text, a1=text), "protobuf")
    with pytest.raises(ConfigError, match="table t: the fields") as refused:
        RegisteredRows("protobuf", told, "t")
    assert "in fields" in refused.value.hint
