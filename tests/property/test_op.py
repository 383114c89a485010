"""The op format against a plain json.dumps twin; what is written reads back."""

import json
import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.support.strategies import lsns, names, ops, texts
from walstream.errors import WalstreamError
from walstream.formats import op as op_format
from walstream.op import Kind, ReplicationOp, Table, halves
from walstream.row import OMITTED, NotSent, Row, any_absent


def known(row: Row | None) -> list[str | None] | None:
    """Print what was not sent as null."""
    if row is None:
        return None
    return [None if isinstance(value, NotSent) else value for value in row]


def twin(op: ReplicationOp) -> bytes:
    """Encode by formats.md's words, without a thought for speed."""
    bodies: dict[Kind, Any] = {
        Kind.INSERT: {"Insert": known(op.new)},
        Kind.UPDATE: {"Update": [known(op.old), known(op.new)]},
        Kind.DELETE: {"Delete": known(op.old)},
        Kind.TRUNCATE: "Truncate",
    }
    fields: dict[str, Any] = {
        "table_name": op.table.name,
        "col_names": op.table.columns,
        "lsn": op.lsn,
        "seq_id": op.seq_id,
        "op": bodies[op.kind],
    }
    if op.table.schema != "public":
        fields["schema"] = op.table.schema
    if op.snapshot:
        fields["snapshot"] = True
    absent = {
        half: missing
        for half, row in (("old", op.old), ("new", op.new))
        if (missing := _missing(op.table, row))
    }
    if absent:
        fields["absent"] = absent
    if op.kind is Kind.TRUNCATE:
        fields["partitions"] = op.partitions
    return json.dumps(fields, ensure_ascii=False, separators=(",", ":")).encode()


def _missing(table: Table, row: Row | None) -> list[str]:
    return [
        name
        for name, value in zip(table.columns, row or (), strict=False)
        if isinstance(value, NotSent)
    ]


def as_read(row: Row | None) -> list[Any] | None:
    """Expect what a reader can know: not why a value was not sent."""
    if row is None:
        return None
    return [OMITTED if isinstance(value, NotSent) else value for value in row]


@given(ops())
def test_encoder_agrees_with_its_plain_twin(op: ReplicationOp) -> None:
    assert op_format.OpEncoder(op.table).encode(op) == twin(op)


@given(ops())
def test_what_is_encoded_reads_back(op: ReplicationOp) -> None:
    read = op_format.decode(op_format.OpEncoder(op.table).encode(op))
    assert (read.table.schema, read.table.name, read.table.columns) == (
        op.table.schema,
        op.table.name,
        op.table.columns,
    )
    assert (read.kind, read.lsn, read.seq_id) == (op.kind, op.lsn, op.seq_id)
    assert (read.old, read.new) == (as_read(op.old), as_read(op.new))
    assert (read.absent, read.snapshot) == (op.absent, op.snapshot)
    assert read.partitions == op.partitions


@given(ops().filter(lambda op: op.kind is Kind.UPDATE and op.old is not None))
def test_halves_hold_what_the_update_held(op: ReplicationOp) -> None:
    delete, insert = halves(op)
    assert (delete.kind, delete.old, delete.new) == (Kind.DELETE, op.old, None)
    assert (insert.kind, insert.old, insert.new) == (Kind.INSERT, None, op.new)
    assert (delete.seq_id, insert.seq_id) == (op.seq_id, op.seq_id + 1)
    assert delete.absent == any_absent(op.old)
    assert insert.absent == any_absent(op.new)


_ESCAPED = re.compile(r'[\x00-\x08\x0b-\x1f"\\]')
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**65) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["Insert", "Update", "old", "x"]), inner)
    ),
    max_leaves=5,
)


def reads_or_refuses(value: bytes) -> None:
    try:
        op_format.decode(value)
    except WalstreamError:
        return


@given(st.binary() | JSON.map(json.dumps).map(str.encode))
def test_any_bytes_read_or_are_refused(value: bytes) -> None:
    reads_or_refuses(value)


@given(ops(), st.data())
def test_record_with_a_field_of_another_type_reads_or_is_refused(
    op: ReplicationOp, data: st.DataObject
) -> None:
    fields = json.loads(twin(op))
    for name in data.draw(st.sets(st.sampled_from([*fields, "absent", "schema"]))):
        fields[name] = data.draw(JSON)
    reads_or_refuses(json.dumps(fields).encode())


@given(
    st.integers(1, 3).flatmap(
        lambda width: st.lists(st.tuples(*[st.none() | texts] * width), min_size=1)
    ),
    lsns,
    st.integers(1, 2**31),
    st.just("public") | names,
)
def test_lines_of_copy_text_are_encoded_as_their_rows(
    rows: list[tuple[str | None, ...]], lsn: int, chunk: int, schema: str
) -> None:
    table = Table(schema, "t", tuple(map(str, range(len(rows[0])))))
    encoder = op_format.OpEncoder(table)
    lines = [[copy_text(value) for value in row] for row in rows]
    text = "".join("\t".join(line) + "\n" for line in lines)
    encoded = encoder.encode_lines(text.encode(), lsn, chunk << 32)
    if encoded is None:
        assert _ESCAPED.search(text.replace("\\N", ""))
        return
    assert encoded == [
        encoder.encode(
            ReplicationOp(
                Kind.INSERT, table, lsn, (chunk << 32) + index, new=row, snapshot=True
            )
        )
        for index, row in enumerate(rows)
    ]


def copy_text(value: str | None) -> str:
    """Write a value as COPY does."""
    if value is None:
        return "\\N"
    for plain, letter in zip("\\\b\f\n\r\t\v", "\\bfnrtv", strict=True):
        value = value.replace(plain, f"\\{letter}")
    return value
