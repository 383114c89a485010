"""Keys: records of the key's columns."""

from typing import Any

import pytest

from tests.support.oracles.debezium_avro import read
from tests.unit.formats.encodings.avro.test_columns import INT8, NUMERIC, TEXT, rows
from walstream.errors import HistoryError, WalstreamError
from walstream.formats.debezium import DebeziumOptions
from walstream.formats.encodings.avro import AvroKey
from walstream.op import Kind, ReplicationOp
from walstream.row import OMITTED


def _key(*indexes: int) -> AvroKey:
    return AvroKey(rows(INT8, TEXT, NUMERIC), DebeziumOptions("app"), indexes)


def _op(
    kind: Kind, old: list[Any] | None = None, new: list[Any] | None = None
) -> ReplicationOp:
    return ReplicationOp(kind, rows(INT8, TEXT, NUMERIC).columns.table, 5, 0, old, new)


def test_a_key_has_its_columns_and_its_own_name() -> None:
    key = _key(0, 2)
    assert '"name":"Key","namespace":"app.s.t"' in key.schema_text
    written = key.render(_op(Kind.INSERT, None, ["7", None, "x", None]))
    assert read(key.schema_text, written) == {"id": 7, "c1": "x"}
    deleted = key.render(_op(Kind.DELETE, ["8", None, None, None]))
    assert read(key.schema_text, deleted) == {"id": 8, "c1": None}


def test_a_head_stands_before_it() -> None:
    key = _key(0)
    key.head = b"\0\0\0\0\7"
    assert key.render(_op(Kind.INSERT, None, ["1", "2", "x", None])) == key.head + b"\2"


def test_a_truncate_and_a_table_without_a_key_have_none() -> None:
    assert _key(0).render(_op(Kind.TRUNCATE)) is None
    assert _key().render(_op(Kind.INSERT, None, ["1", "2", "x", None])) is None


def test_headers_of_a_moved_key_are_json() -> None:
    update = _op(Kind.UPDATE, ["1", "2", "x", None], ["3", "2", "x", None])
    assert [value for _, value in _key(0).change_headers(update)] == [
        b'{"id":3}', b'{"id":1}',
    ]  # fmt: skip


def test_what_cannot_be_in_a_key_is_named() -> None:
    with pytest.raises(HistoryError, match="'c0' of its key was not sent"):
        _key(1).render(_op(Kind.DELETE, ["1", OMITTED, None, None]))
    with pytest.raises(WalstreamError, match="'c0'"):
        _key(1).render(_op(Kind.INSERT, None, ["1", "x", None, None]))
    with pytest.raises(WalstreamError, match="cannot be written"):
        _key(0).render(_op(Kind.INSERT, None, [None, "1", None, None]))
