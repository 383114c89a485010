"""Records of a registry's schemas are shown as those of JSON."""

import json
from base64 import b64decode
from dataclasses import replace
from typing import Any

import pytest

from tests.support.loads import polled_row, registered_op
from tests.support.oracles.debezium_avro import converted
from tests.support.oracles.every_type import documents
from walstream.cli.tail.change import Change, read
from walstream.cli.tail.content import ContentKind, Format
from walstream.cli.tail.json_lines import document
from walstream.cli.tail.schema_records import SchemaRecords
from walstream.formats.encodings.avro.op import AvroOp
from walstream.formats.encodings.row.column import RowColumnType
from walstream.formats.encodings.wire import HEAD, head
from walstream.kafka.registry.errors import RegistryAway, SchemaUnregistered
from walstream.kafka.topic_reader import TopicRecord
from walstream.op import Kind

KEY = '{"type":"record","name":"Key","fields":[{"name":"id","type":"int"}]}'
ROW = KEY.replace("Key", "t.Value")


def record(value: bytes | None, key: bytes | None = None) -> TopicRecord:
    return TopicRecord("t", 0, 0, key, value, [], None)


class Registry:
    def __init__(self, *texts: str) -> None:
        self.texts = texts
        self.kind = "AVRO"
        self.asked: list[int] = []
        self.told: list[str] = []
        self.records = SchemaRecords(self.schema_of, self.told.append)

    def schema_of(self, number: int) -> tuple[str, str]:
        self.asked.append(number)
        if number >= len(self.texts):
            raise SchemaUnregistered("subject 'of id' does not have it")
        return self.kind, self.texts[number]

    def shown(self, value: bytes | None, key: bytes | None = None) -> Change:
        return read(*self.records.plain(record(value, key)))


FOUND: dict[str, Any] = converted()


def test_the_format_row_is_shown_as_row() -> None:
    text = RowColumnType("string")
    rows = polled_row.made("avro", polled_row.spec(polled_row.columns(v=text)))
    (key, value) = (one.text for one in rows.schemas.values())
    registry = Registry(key, value)
    (written,) = rows.write((3, "x"))
    plain, named = registry.records.plain(record(head(1) + written[HEAD:]))
    assert plain.value == named == rows.hashes.encode([(3, "x")], polled_row.AT)[0]
    assert read(plain, named).content.format is Format.ROW


def test_the_format_op_is_shown_as_op() -> None:
    encoder = AvroOp(registered_op.TABLE, registered_op.OPTIONS)
    registry = Registry(encoder.schema_text)
    encoder.head = head(0)
    one = registered_op.op(Kind.UPDATE, None, ["7", "x", "NaN"])
    headers: Any = [("walstream-position", b"10/3"), ("other", b"")]
    told = replace(record(encoder.encode(one)), headers=headers)
    plain, named = registry.records.plain(told)
    assert plain.headers == headers[1:]
    found = read(plain, named).content
    assert (found.format, found.kind) == (Format.OP, ContentKind.UPDATE)
    assert (found.full_table, found.lsn, found.seq_id) == ("public.t", 10, 3)
    assert found.new == {"id": "7", "v": "x", "n": "NaN"}


@pytest.mark.parametrize("topic", [*FOUND["records"]])
def test_a_change_is_that_of_json(topic: str) -> None:
    registry = Registry(*FOUND["schemas"])
    for (_, value), (_, text) in zip(
        FOUND["records"][topic], documents()[topic], strict=True
    ):
        assert text is not None
        found = registry.shown(head(value[0]) + b64decode(value[1]))
        wanted = read(record(text.encode()))
        assert found.content.kind is wanted.content.kind
        one, other = document(found), document(wanted)
        for name in ("kind", "table", "lsn", "seq_id", "format"):
            assert one[name] == other[name]
        assert str(found.content.new) != ""
        payload = json.loads(text)["payload"]
        assert json.loads(found.record.value or b"") == payload


def test_keys_and_rows_are_read_by_schemas_that_are_asked_for_once() -> None:
    registry = Registry(KEY, ROW)
    for _ in range(2):
        change = registry.shown(head(1) + b"\2", head(0) + b"\4")
        assert change.record.key == b'{"id":2}'
        assert change.record.value == b'{"id":1}'
        assert change.content.format is Format.DEBEZIUM_ROW
    assert registry.asked == [0, 1]
    gone = registry.shown(None, head(0) + b"\4")
    assert gone.content.kind is ContentKind.TOMBSTONE
    assert gone.record.key == b'{"id":2}'


def test_others_stay_as_they_are() -> None:
    registry = Registry(KEY)
    for one in (record(b'{"a":1}', b"k"), record(None), record(b"\0\0")):
        assert registry.records.plain(one) == (one, one.value)
    assert registry.asked == []


def test_what_cannot_be_read_is_shown_as_bytes_and_told_once() -> None:
    registry = Registry("no schema", KEY)
    for number in (0, 7):
        for _ in range(2):
            change = registry.shown(head(number) + b"\2")
            assert change.content.format in {Format.BYTES, Format.TEXT}
    assert registry.asked == [0, 7, 7]
    assert [one.partition(":")[0] for one in registry.told] == [
        "records of schema 0 are shown as they are",
        "records of schema 7 are shown as they are",
    ]
    assert registry.shown(head(1)).record.value == head(1)  # it ends


def test_without_a_registry_it_is_told_once_how_to_name_one() -> None:
    told: list[str] = []
    records = SchemaRecords(None, told.append)
    for one in (record(b"{}"), record(head(1) + b"x"), record(head(2))):
        assert records.plain(one) == (one, one.value)
    (said,) = told
    assert "--registry URL" in said


def test_a_registry_that_is_away_ends_it() -> None:
    def away(_: int) -> tuple[str, str]:
        raise RegistryAway("away")

    with pytest.raises(RegistryAway):
        SchemaRecords(away, print).plain(record(head(0) + b"x"))


def test_a_language_that_nobody_reads_is_told() -> None:
    registry = Registry('syntax = "proto3";')
    registry.kind = "XML"
    assert registry.shown(head(0) + b"\0").record.value == head(0) + b"\0"
    assert "XML" in registry.told[0]


def test_a_record_of_a_json_schema_is_its_json() -> None:
    key = '{"type":"object","properties":{"id":{"type":"integer"}}}'
    registry = Registry(key, key.replace('"type"', '"title":"t.Value","type"', 1))
    registry.kind = "JSON"
    change = registry.shown(head(1) + b'{"id": 1}', head(0) + b'{"id":2}')
    assert (change.record.key, change.record.value) == (b'{"id":2}', b'{"id":1}')
    assert change.content.format is Format.DEBEZIUM_ROW
    assert registry.shown(head(1) + b"{").record.value == head(1) + b"{"
