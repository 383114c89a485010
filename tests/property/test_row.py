"""The format `row` over values of any kind, against a plain json.dumps twin."""

import hashlib
import json
import string
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from walstream.formats.plain import plain
from walstream.formats.row import RowEncoder, decode, row_hash

names = st.text(max_size=8)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(),
    st.text('\0\1\n,:%"\\[]{}' + string.ascii_letters),
    st.binary(max_size=20),
    st.decimals(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(),
    st.uuids(),
    st.ip_addresses(),
    st.frozensets(st.text(max_size=3), max_size=3),
)
keys = st.one_of(st.text(max_size=4), st.integers(), st.booleans(), st.none())
values = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=8,
)
times = st.floats(0, 4e9)


def twin(names: tuple[str, str], columns: list[str], row: list[object]) -> str:
    """Encode by formats.md's words, without a thought for speed."""
    data = {column: plain(value) for column, value in zip(columns, row, strict=True)}
    text = json.dumps(data, sort_keys=True, separators=(", ", ": "), ensure_ascii=True)
    record = {
        "name": names[0],
        "table": names[1],
        "data": data,
        "hash": hashlib.sha256(text.encode()).hexdigest(),
    }
    return json.dumps(record, separators=(",", ":"), allow_nan=False)


@st.composite
def queries(draw: st.DrawFn) -> tuple[list[str], list[list[object]]]:
    columns = draw(st.lists(names, min_size=1, max_size=5, unique=True))
    kinds = draw(st.sampled_from((leaves, values)))
    width = len(columns)
    row = st.lists(kinds, min_size=width, max_size=width)
    return columns, draw(st.lists(row, min_size=1, max_size=4))


@given(st.tuples(names, names), queries(), times)
def test_records_are_those_of_a_plain_writer(
    named: tuple[str, str], query: tuple[list[str], list[list[object]]], at: float
) -> None:
    columns, rows = query
    for record, row in zip(
        RowEncoder(*named, columns).encode(rows, at), rows, strict=True
    ):
        expected = f'{{"timestamp":{at!r},{twin(named, columns, row)[1:]}'
        assert record.decode("ascii") == expected


@given(st.tuples(names, names), queries(), times)
def test_what_is_written_reads_back_and_verifies(
    named: tuple[str, str], query: tuple[list[str], list[list[object]]], at: float
) -> None:
    columns, rows = query
    for record, row in zip(
        RowEncoder(*named, columns).encode(rows, at), rows, strict=True
    ):
        read = decode(record)
        assert (read.timestamp, read.name, read.table) == (at, *named)
        assert list(read.data) == columns
        assert list(read.data.values()) == [plain(value) for value in row]
        assert row_hash(read.data) == read.hash


@given(values)
def test_every_value_has_its_form_in_json(value: object) -> None:
    text = json.dumps(plain(value), allow_nan=False)
    assert json.loads(text) == plain(value)


@given(st.lists(leaves, max_size=5))
def test_a_value_is_written_the_same_wherever_it_stands(row: Sequence[object]) -> None:
    assert plain(list(row)) == [plain(value) for value in row]
