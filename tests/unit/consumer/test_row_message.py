"""Messages of the format `row`."""

import json

import pytest

from consumer.decoder import Decoder
from consumer.errors import SchemasAway
from consumer.op import ConsumerRecord
from consumer.registry import SchemaRegistry
from consumer.row_message import BadMessage, RowMessage, verify
from tests.support.loads import polled_row
from tests.support.servers.faulty_registry import faulty_registry
from walstream.errors import WalstreamError
from walstream.formats.encodings.row.column import RowColumnType
from walstream.formats.encodings.wire import HEAD, head
from walstream.formats.row import row_hash

TEXT = RowColumnType("string")
# the literal message and the vectors of the format
MESSAGE = (
    rb'{"timestamp":1795242889.1057744,"name":"processes","table":"processes",'
    rb'"data":{"id":3,"pid":30,"name":"n3","user":"root","command":"/bin/\u00e9"},'
    rb'"hash":"a6c4b600c43857fa266e01921d439f10ac613c140db4b525f5747ea94a3f47fd"}'
)
VECTORS = [
    (
        {"a": 1, "b": None},
        "0c6b73e7b48e199ae73fa63c9220b7027a756e4a76995d767d9cf6fe0fbf6e88",
    ),
    (
        {"t": True, "n": 1.5, "s": "\u00e9"},
        "ab5d1f88ce8ce92acc90ede254da7f3ff9f6eeaae4df1162c8976b165fd793da",
    ),
    ({}, "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"),
]


@pytest.mark.parametrize(("data", "expected"), VECTORS)
def test_the_vectors_hash_as_the_format_says(
    data: dict[str, object], expected: str
) -> None:
    assert row_hash(data) == expected


def test_the_literal_message_verifies() -> None:
    message = RowMessage.of(MESSAGE)
    assert (message.name, message.table) == ("processes", "processes")
    assert list(message.data) == ["id", "pid", "name", "user", "command"]
    assert message.time.year == 2026
    assert verify(message)
    assert verify(MESSAGE)
    assert verify(MESSAGE.decode())


def test_changed_data_do_not_verify() -> None:
    assert not verify(MESSAGE.replace(b"root", b"wort"))


@pytest.mark.parametrize(
    "value",
    [
        b"",
        b"\xff",
        b"[]",
        b"null",
        b"{}",
        b"[" * 100_000,
        MESSAGE.replace(b'"name":"processes"', b'"name":7'),
        MESSAGE.replace(b"1795242889.1057744", b'"soon"'),
        json.dumps({**json.loads(MESSAGE), "data": [1]}).encode(),
    ],
)
def test_other_bytes_are_no_message(value: bytes) -> None:
    with pytest.raises(BadMessage):
        RowMessage.of(value)
    assert not verify(value)


def test_name_table_and_hash_name_a_message() -> None:
    message = RowMessage.of(MESSAGE)
    later = RowMessage.of(MESSAGE.replace(b"1795242889", b"1795242999"))
    other = RowMessage.of(MESSAGE.replace(b'"table":"processes"', b'"table":"p"'))
    assert message.digest == later.digest
    assert message.digest != other.digest


def test_no_value_shows_in_a_repr() -> None:
    assert "root" not in repr(RowMessage.of(MESSAGE))


def test_a_row_of_a_registrys_schema_is_that_of_json() -> None:
    rows = polled_row.made("avro", polled_row.spec(polled_row.columns(v=TEXT)))
    (record,) = rows.write((3, "é"))
    with pytest.raises(BadMessage, match="in a schema registry"):
        RowMessage.of(record)
    with faulty_registry() as server:
        registry = SchemaRegistry({"url": server.url})
        (number,) = [
            server.register("s", one.text)
            for one in rows.schemas.values()
            if one.subject.endswith("value")
        ]
        other = server.register("k", '{"type":"record","name":"K","fields":[]}')
        message = RowMessage.of(head(number) + record[HEAD:], registry)
        with pytest.raises(BadMessage, match="another schema"):
            RowMessage.of(head(other), registry)
        value = head(number) + record[HEAD:]
        found = Decoder(registry=registry).as_json(
            ConsumerRecord("t", 0, 0, None, value)
        )
        with pytest.raises(WalstreamError, match="a polled row"):
            Decoder(registry=registry).op_of(ConsumerRecord("t", 0, 0, None, value))
        registry.close()
    assert verify(message)
    assert message.data == {"id": 3, "v": "é"}
    assert found.value is not None
    assert RowMessage.of(found.value) == message


def test_a_registry_that_is_away_makes_no_message_bad() -> None:
    with faulty_registry() as server:
        url = server.url
    registry = SchemaRegistry({"url": url})
    with pytest.raises(SchemasAway):
        RowMessage.of(head(1) + b"x", registry)
    registry.close()
