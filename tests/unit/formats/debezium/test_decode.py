"""Envelopes read back: those of walstream, and those that Debezium itself wrote."""

import json
from dataclasses import replace

import pytest

from tests.support.oracles.debezium import VARIANTS, Writer, golden, ops
from walstream.errors import WalstreamError
from walstream.formats.debezium.decode import EnvelopeDecoder
from walstream.formats.debezium.position import HEADER
from walstream.op import Kind, ReplicationOp, halves
from walstream.row import OMITTED, UNCHANGED

_SOURCE = b'{"schema":"s","table":"t","ts_ms":1,"lsn":-1}'
_PLAIN = ("pk2", "nopk", "full_", "toast_", "part", "ddl")


@pytest.mark.parametrize("schemas", [True, False])
def test_ops_come_back_with_their_names_and_rows(schemas: bool) -> None:
    options = replace(VARIANTS["dbz"], schemas=schemas, version="walstream 1")
    writer, decoder = Writer(options), EnvelopeDecoder()
    seen = 0
    for _, found in ops():
        if not isinstance(found, ReplicationOp) or found.table.name not in _PLAIN:
            continue
        for op in halves(found) if found.key_changed else (found,):
            encoder, key = writer.of(op.table)
            back = decoder.decode(encoder.encode(op), key.render(op))
            seen += 1
            assert (back.kind, back.lsn, back.seq_id) == (op.kind, op.lsn, op.seq_id)
            assert (back.row_lsn, back.xid) == (op.row_lsn, op.xid)
            assert back.commit_time == op.commit_time
            assert back.table.full_name == op.table.full_name
            assert back.new == _sent(op.new)
            if op.kind is Kind.TRUNCATE:
                continue
            assert (back.table.columns, back.table.key) == (
                op.table.columns,
                op.table.key,
            )
            for index in op.table.key:
                row = back.new or back.old or ()
                assert row[index] == (op.new or op.old or ())[index]
    assert seen == 31


def _sent(row: object) -> object:
    if not isinstance(row, list):
        return row
    return [OMITTED if value is UNCHANGED else value for value in row]


def test_records_of_debezium_are_read() -> None:
    decoder = EnvelopeDecoder()
    found = [
        decoder.decode(record.value.encode(), (record.key or "null").encode())
        for record in golden()["dbz.public.full_"]
        if record.value
    ]
    assert [op.kind.value for op in found] == [
        "Insert", "Update", "Delete", "Insert", "Delete",
    ]  # fmt: skip
    assert found[1].old == ["1", "a", "x" * 10]
    assert [(op.lsn, op.seq_id) for op in found[2:4]] == [(26546000, 0), (26546000, 1)]
    assert found[0].table.key == (0,)
    names = [(op.lsn, op.seq_id) for op in found]
    assert names == sorted(set(names))


def test_an_unchanged_value_is_absent() -> None:
    record = golden()["dbz.public.toast_"][1]
    op = EnvelopeDecoder().decode((record.value or "").encode())
    assert op.absent
    assert op.new == ["1", "b", OMITTED, OMITTED, OMITTED]


def test_a_header_names_the_op() -> None:
    record = golden()["dstr.public.pk2"][0]
    value = (record.value or "").encode()
    op = EnvelopeDecoder().decode(value, headers={HEADER: b"99/3"})
    assert (op.lsn, op.seq_id) == (99, 3)


def test_a_row_that_was_read_is_one() -> None:
    source = {"schema": "s", "table": "t", "ts_ms": 946684800001, "snapshot": "last"}
    value = {"before": None, "after": {"id": 1}, "source": source, "op": "r"}
    op = EnvelopeDecoder().decode(json.dumps(value).encode())
    assert (op.kind, op.snapshot, op.commit_time) == (Kind.INSERT, True, 1000)


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"null",
        b"[]",
        b'"x"',
        b"{}",
        b'{"op":"m","source":{},"message":{}}',
        b'{"op":"c","source":{},"before":null,"after":null}',
        b'{"op":"c","source":{"schema":"s","table":"t"},"before":null,"after":[1]}',
        b'{"op":"c","source":{"schema":1,"table":"t"},"before":null,"after":{"a":1}}',
        b'{"op":"u","source":%b,"before":{"b":1},"after":{"a":1}}' % _SOURCE,
        b'{"op":"c","source":%b,"before":null,"after":{"a":1}}' % _SOURCE,
    ],
)
def test_anything_else_is_refused(value: bytes) -> None:
    with pytest.raises(WalstreamError, match="not a record of Debezium"):
        EnvelopeDecoder().decode(value)


def test_a_key_of_another_shape_is_refused() -> None:
    record = golden()["dbz.public.pk2"][0]
    with pytest.raises(WalstreamError, match="not a record of Debezium"):
        EnvelopeDecoder().decode((record.value or "").encode(), b"[1]")
