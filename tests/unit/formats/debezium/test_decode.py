"""Envelopes read back: those of walstream, and those that Debezium itself wrote."""

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.oracles.debezium import VARIANTS, Writer, golden, ops
from walstream.errors import WalstreamError
from walstream.formats.debezium.decode import EnvelopeDecoder
from walstream.formats.debezium.position import HEADER
from walstream.op import Kind, ReplicationOp, halves
from walstream.row import OMITTED, UNCHANGED

_CONNECTOR = b'"connector":"postgresql"'
_SOURCE = b'{%b,"schema":"s","table":"t","ts_ms":1,"lsn":-1}' % _CONNECTOR
_SOURCE_OF_T = _SOURCE.decode().replace("-1", "1")
_OTHERS = ("dbz.transaction", "dbz.message", "__debezium-heartbeat.dbz")
_PLAIN = ("pk2", "nopk", "full_", "toast_", "part", "ddl")


def read(
    value: bytes | str | None, key: str | None = None, headers: Any = None
) -> ReplicationOp:
    """Read one that is of a row."""
    found = EnvelopeDecoder().read(raw(value), raw(key or "null"), headers or {})
    assert found is not None
    return found.op


def raw(text: bytes | str | None) -> bytes:
    return text if isinstance(text, bytes) else (text or "").encode()


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
            found_back = decoder.read(encoder.encode(op), key.render(op))
            assert found_back is not None
            assert found_back.exact
            assert (found_back.schemas is not None) is schemas
            back = found_back.op
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
    found = [
        read(record.value, record.key)
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
    op = read(record.value)
    assert op.absent
    assert op.new == ["1", "b", OMITTED, OMITTED, OMITTED]


def test_a_header_names_the_op() -> None:
    record = golden()["dstr.public.pk2"][0]
    op = read(record.value, headers={HEADER: b"99/3"})
    assert (op.lsn, op.seq_id) == (99, 3)


def test_debeziums_own_name_of_an_op_is_not_exact() -> None:
    for topic in ("dbz.public.pk2", "dstr.public.pk2"):
        found = EnvelopeDecoder().read(raw(golden()[topic][0].value))
        assert found is not None
        assert not found.exact


@pytest.mark.parametrize("topic", _OTHERS)
def test_messages_transactions_and_heartbeats_have_no_row(topic: str) -> None:
    records = golden()[topic]
    assert records
    for record in records:
        assert record.value
        assert EnvelopeDecoder().read(raw(record.value), raw(record.key)) is None


def test_a_heartbeats_fields_under_another_key_are_none() -> None:
    with pytest.raises(WalstreamError, match="not a record of Debezium"):
        EnvelopeDecoder().read(b'{"ts_ms":1}', b'{"id":1}')


def test_another_connector_is_named() -> None:
    record = raw(golden()["dbz.public.pk2"][0].value)
    other = record.replace(_CONNECTOR, b'"connector":"mysql"')
    with pytest.raises(WalstreamError, match="connector 'mysql'"):
        EnvelopeDecoder().read(other)


def test_a_row_that_was_read_is_one() -> None:
    source = {
        "connector": "postgresql",
        "schema": "s",
        "table": "t",
        "ts_ms": 946684800001,
        "snapshot": "last",
    }
    value = {"before": None, "after": {"id": 1}, "source": source, "op": "r"}
    op = read(json.dumps(value))
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
        b'{"op":"c","source":%b,"before":null,"after":[1]}'
        % _SOURCE.replace(b"-1", b"1"),
        b'{"op":"c","source":%b,"before":null,"after":{"a":1}}'
        % _SOURCE.replace(b'"s"', b"1"),
        b'{"status":"NO","id":"1","event_count":0,"data_collections":[],"ts_ms":1}',
        b'{"op":"u","source":%b,"before":{"b":1},"after":{"a":1}}' % _SOURCE,
        b'{"op":"c","source":%b,"before":null,"after":{"a":1}}' % _SOURCE,
    ],
)
def test_anything_else_is_refused(value: bytes) -> None:
    with pytest.raises(WalstreamError, match="not a record of Debezium"):
        EnvelopeDecoder().read(value)


@pytest.mark.parametrize("key", ["[1]", "1", "id=1", '{"id":1,"routed":2}'])
def test_a_key_that_is_not_the_rows_names_no_columns(key: str) -> None:
    record = golden()["dbz.public.full_"][0]
    assert read(record.value, record.key).table.key == (0,)
    assert read(record.value, key).table.key == ()


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("12345678901234567890.123456789", "12345678901234567890.123456789"),
        ("123456789012345678901234567890", "123456789012345678901234567890"),
        ("-0.1", "-0.1"),
        ("1.0E20", "1e+20"),
    ],
)
def test_a_numeric_without_a_schema_keeps_its_digits(written: str, text: str) -> None:
    row = f'{{"id":1,"n":{written},"many":[{written},null]}}'
    op = read(f'{{"op":"c","before":null,"after":{row},"source":{_SOURCE_OF_T}}}')
    assert op.new == ["1", text, f"{{{text},NULL}}"]


@pytest.mark.parametrize("written", ["12345678901234567890.10", "5.00", "7", "0E-7"])
def test_a_numeric_that_is_written_as_a_number_keeps_its_digits(written: str) -> None:
    kind = {
        "field": "n",
        "type": "bytes",
        "name": "org.apache.kafka.connect.data.Decimal",
        "parameters": {"scale": "2"},
    }
    schema = json.dumps({"fields": [{"field": "after", "fields": [kind]}]})
    row = (
        f'{{"op":"c","before":null,"after":{{"n":{written}}},"source":{_SOURCE_OF_T}}}'
    )
    op = read(f'{{"schema":{schema},"payload":{row}}}')
    assert op.new == ["0.0000000" if written == "0E-7" else written]


@pytest.mark.parametrize("inner", ["0.5", "1e-99999999999999999999"])
def test_numbers_that_nest_too_deep_are_refused(inner: str) -> None:
    deep = f"{'[' * 1000}{inner}{']' * 1000}"
    row = f'{{"op":"c","before":null,"after":{{"n":{deep}}},"source":{_SOURCE_OF_T}}}'
    with pytest.raises(WalstreamError):
        read(row)
