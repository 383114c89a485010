"""Keys: messages of the key's columns."""

from typing import Any

import pytest

from tests.support.oracles.protobuf_values import read
from tests.unit.formats.encodings.avro.test_columns import INT8, NUMERIC, TEXT
from tests.unit.formats.encodings.avro.test_columns import rows as avro_rows
from walstream.errors import HistoryError, WalstreamError
from walstream.formats.debezium import DebeziumOptions
from walstream.formats.encodings.protobuf import number, parsed_proto, proto_shape
from walstream.formats.encodings.protobuf.key import ProtoKey
from walstream.op import Kind, ReplicationOp
from walstream.row import OMITTED

COLUMNS = avro_rows(INT8, TEXT, NUMERIC).columns


def _key(*indexes: int, history: str = "") -> tuple[ProtoKey, str]:
    key = ProtoKey(COLUMNS, DebeziumOptions("app"), indexes)
    versions = [parsed_proto(history)] if history else []
    text = number(proto_shape(key.schema), versions).text()
    key.use(text)
    return key, text


def _op(
    kind: Kind, old: list[Any] | None = None, new: list[Any] | None = None
) -> ReplicationOp:
    return ReplicationOp(kind, COLUMNS.table, 5, 0, old, new)


@pytest.mark.parametrize("history", ["", "message Key { string c1 = 1; }"])
def test_a_key_has_its_columns_and_its_own_name(history: str) -> None:
    key, text = _key(0, 2, history=history)
    assert "package app.s.t;\n\nmessage Key {" in text
    written = key.render(_op(Kind.INSERT, None, ["7", None, "x", None]))
    assert written is not None
    assert read(key.schema, text, written) == {"id": 7, "c1": "x"}
    deleted = key.render(_op(Kind.DELETE, ["0", None, None, None]))
    assert deleted == b""
    assert read(key.schema, text, deleted) == {"id": 0, "c1": None}


def test_a_head_stands_before_it() -> None:
    key, _ = _key(0)
    key.head = b"\0\0\0\0\7\0"
    written = key.render(_op(Kind.INSERT, None, ["1", "2", "x", None]))
    assert written == key.head + b"\x08\1"


def test_a_truncate_and_a_table_without_a_key_have_none() -> None:
    assert _key(0)[0].render(_op(Kind.TRUNCATE)) is None
    assert _key()[0].render(_op(Kind.INSERT, None, ["1", "2", "x", None])) is None


def test_headers_of_a_moved_key_are_json() -> None:
    update = _op(Kind.UPDATE, ["1", "2", "x", None], ["3", "2", "x", None])
    assert [value for _, value in _key(0)[0].change_headers(update)] == [
        b'{"id":3}', b'{"id":1}',
    ]  # fmt: skip


def test_what_cannot_be_in_a_key_is_named() -> None:
    with pytest.raises(HistoryError, match="'c0' of its key was not sent"):
        _key(1)[0].render(_op(Kind.DELETE, ["1", OMITTED, None, None]))
    with pytest.raises(WalstreamError, match="'c0'"):
        _key(1)[0].render(_op(Kind.INSERT, None, ["1", "x", None, None]))
    with pytest.raises(WalstreamError, match="'id'"):
        _key(0)[0].render(
            _op(Kind.INSERT, None, ["9223372036854775808", "1", None, None])
        )
    with pytest.raises(WalstreamError, match="cannot be written"):
        _key(0)[0].render(_op(Kind.INSERT, None, [None, "1", None, None]))
    with pytest.raises(WalstreamError, match="without numbers"):
        ProtoKey(COLUMNS, DebeziumOptions("app"), (0,)).render(
            _op(Kind.INSERT, None, ["1", "1", None, None])
        )
