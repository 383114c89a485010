"""The event format against a plain twin; what is written reads back."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import lsns, names, times
from tests.support.strategies import texts as any_texts
from walstream.errors import WalstreamError
from walstream.formats.column_type import ARRAY
from walstream.formats.context import Context, SourceOrigin
from walstream.formats.event import EventEncoder, Number, decode
from walstream.formats.value import renderer
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import OMITTED, UNCHANGED, NotSent, Row

DOCUMENTS = st.recursive(
    st.sampled_from(["null", "true", "1", "-0.50", "1e400", '"x"', '"\\ud800"']),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | inner.map(lambda item: f'{{"a":\n{item},"a": {item}}}')
    ),
    max_leaves=4,
)
OIDS = [0, 16, 20, 23, 25, 114, 701, 1082, 1184, 1700, 3802, 16400]
ARRAYS = [1000, 1016, 199, 1022, 1182, 1185, 3807, 1020, 1009, ARRAY]


def literal(items: Any) -> str:
    """Write an array as array_out does, with every item in quotes."""
    if items is None:
        return "NULL"
    if isinstance(items, list):
        return f"{{{','.join(map(literal, items))}}}"
    escaped = items.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


MESSY = st.text('{}[],;:="\\10.e+-\nNULtf', max_size=12)
TEXTS = (
    any_texts
    | MESSY
    | DOCUMENTS
    | st.recursive(
        st.none() | any_texts | DOCUMENTS,
        lambda inner: st.lists(inner, max_size=3),
        max_leaves=5,
    ).map(literal)
    | st.sampled_from(["t", "NaN", "1e-45", "2020-01-02", "2020-01-02 03:04:05.6+00"])
)


@st.composite
def ops(draw: st.DrawFn) -> ReplicationOp:
    columns = tuple(draw(st.lists(names, min_size=1, max_size=4, unique=True)))
    width = len(columns)
    oids = draw(
        st.lists(st.sampled_from(OIDS + ARRAYS), min_size=width, max_size=width)
    )
    key = draw(st.sets(st.integers(0, width - 1)))
    table = Table("s", draw(names), columns, tuple(sorted(key)), tuple(oids))
    value = st.sampled_from([None, OMITTED, UNCHANGED]) | TEXTS
    row = st.lists(value, min_size=width, max_size=width)
    kind = draw(st.sampled_from(Kind))
    return ReplicationOp(
        kind,
        table,
        draw(lsns),
        draw(st.integers(0, 2**63)),
        old=draw(row) if kind in (Kind.UPDATE, Kind.DELETE) else None,
        new=draw(row) if kind in (Kind.UPDATE, Kind.INSERT) else None,
        row_lsn=draw(lsns),
        commit_time=draw(times),
    )


def exact(text: bytes) -> Any:
    return json.loads(text, parse_int=Number, parse_float=Number)


def expected(op: ReplicationOp) -> dict[str, Any]:
    """Say which columns stand in a record, by formats.md's words."""
    row: Row = (op.old if op.kind is Kind.DELETE else op.new) or ()
    columns: dict[str, Any] = {}
    described = zip(op.table.columns, op.table.type_oids, row, strict=True)
    for index, (name, oid, value) in enumerate(described if row else ()):
        nulled = op.kind is Kind.DELETE and op.table.key and index not in op.table.key
        if nulled or value is None:
            columns[name] = None
        elif not isinstance(value, NotSent):
            columns[name] = exact(renderer(oid)(value))
    return columns


@given(ops(), names, names)
def test_any_op_is_one_line_of_json_that_reads_back(
    op: ReplicationOp, host: str, database: str
) -> None:
    value = EventEncoder(op.table, Context(SourceOrigin(host, database))).encode(op)
    assert b"\n" not in value
    assert b"\r" not in value
    record = decode(value)
    assert (record.host, record.database, record.table) == (
        host,
        database,
        op.table.name,
    )
    assert (record.kind, record.row_lsn, record.value) == (op.kind, op.row_lsn, value)
    columns = record.columns()
    assert columns == expected(op)
    assert list(columns) == sorted(columns)


@given(ops())
def test_any_record_becomes_an_op(op: ReplicationOp) -> None:
    read = decode(EventEncoder(op.table, Context()).encode(op)).op()
    assert (read.kind, read.table.name, read.lsn) == (
        op.kind,
        op.table.name,
        op.row_lsn,
    )
    row = read.old if op.kind is Kind.DELETE else read.new
    assert read.table.columns == tuple(sorted(expected(op)))
    assert len(row or ()) == len(read.table.columns)


@given(
    st.sampled_from([16, 20, 701, 1082, 1114, 1184, 25]),
    st.lists(st.none() | any_texts | st.sampled_from(["t", "1", "NaN"])),
)
def test_an_array_holds_what_each_of_its_items_is(
    oid: int, items: list[str | None]
) -> None:
    array = {16: 1000, 20: 1016, 701: 1022, 1082: 1182, 1114: 1115, 1184: 1185}
    written = renderer(array.get(oid, 1009))(literal(items))
    element = renderer(oid)
    assert exact(written) == [
        None if item is None else exact(element(item)) for item in items
    ]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**65) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["Table", "Action", "x"]), inner)
    ),
    max_leaves=5,
)


def reads_or_refuses(value: bytes) -> None:
    try:
        decode(value).op()
    except WalstreamError:
        return


@given(st.binary() | JSON.map(json.dumps).map(str.encode))
def test_any_bytes_read_or_are_refused(value: bytes) -> None:
    reads_or_refuses(value)


@given(ops(), st.data())
def test_record_with_a_field_of_another_type_reads_or_is_refused(
    op: ReplicationOp, data: st.DataObject
) -> None:
    fields = json.loads(EventEncoder(op.table, Context()).encode(op))
    for name in data.draw(st.sets(st.sampled_from(sorted(fields)))):
        fields[name] = data.draw(JSON)
    reads_or_refuses(json.dumps(fields).encode())
