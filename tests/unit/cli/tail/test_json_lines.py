"""`--json`: stable names, nothing lost, every line prints."""

import json
from typing import Any

import pytest
from pydantic import TypeAdapter

from tests.support.oracles import vectors
from tests.support.project.own_coverage import ROOT
from walstream.cli.tail.change import read
from walstream.cli.tail.json_lines import Line, line
from walstream.kafka.topic_reader import TopicRecord

SCHEMA = TypeAdapter(Line)


def printed(value: bytes | None, key: bytes | None = b'["1"]') -> dict[str, Any]:
    text = line(read(TopicRecord("topic", 3, 42, key, value, [], 1795242482019)))
    assert text.isprintable()
    SCHEMA.validate_json(text)
    document: dict[str, Any] = json.loads(text)
    return document


@pytest.mark.parametrize("value", [*vectors.ALL, None, b"text", b"\xff"])
def test_every_format_fits_the_schema(value: bytes | None) -> None:
    printed(value)


def test_update_has_both_rows() -> None:
    assert printed(vectors.OPS["update"]) == {
        "topic": "topic",
        "partition": 3,
        "offset": 42,
        "timestamp": "2026-11-21T06:28:02.019Z",
        "key": '["1"]',
        "format": "op",
        "kind": "update",
        "table": "public.stock",
        "lsn": "0/1B019A0",
        "seq_id": 1,
        "old": {"id": "1", "n": "9", "note": None},
        "new": {"id": "1", "n": "9", "note": 'hé"llo\n'},
    }


def test_absent_columns_are_named_and_not_null() -> None:
    document = printed(vectors.OPS["key only"])
    assert document["old"] == {"id": "1"}
    assert document["absent"] == {"old": ["n", "v"]}


def test_snapshot_and_what_only_a_format_has_are_told() -> None:
    assert printed(vectors.OPS["snapshot"])["snapshot"] is True
    assert printed(vectors.OPS["truncate"])["more"] == {"partitions": 4}
    assert printed(vectors.ROW)["more"]["hash"].startswith("a6c4b600")


def test_numbers_stay_numbers_exactly() -> None:
    value = vectors.EVENT % (b"insert", b'{"a":9007199254740993,"b":12.50}')
    text = line(read(TopicRecord("t", 0, 0, None, value, [], None)))
    assert '"new":{"a":9007199254740993,"b":12.50}' in text


def test_deep_values_are_printed() -> None:
    deep = b"[" * 300 + b"]" * 300
    value = vectors.EVENT % (b"insert", b'{"a":%b}' % deep)
    text = line(read(TopicRecord("t", 0, 0, None, value, [], None)))
    assert json.loads(text)["new"]["a"]


def test_unknown_values_and_keys_come_whole() -> None:
    assert printed(b"\x1b[31m")["value"] == "\x1b[31m"
    document = printed(b"\xff\x00", key=b"\xfe")
    assert document["value_base64"] == "/wA="
    assert (document["key"], document["key_base64"]) == ("\\xfe", "/g==")
    assert printed(None, key=None)["key"] is None


def test_schema_is_the_published_one() -> None:
    published = json.loads((ROOT / "docs/schemas/tail.json").read_text())
    assert SCHEMA.json_schema(mode="serialization") == published
