"""Forms of messages: arrays, maps, enums, and what Connect says of types."""

import pytest

from tests.support.oracles.protobuf_values import message_class
from walstream.formats.encodings.protobuf.forms import ITEMS, NULLS
from walstream.formats.encodings.protobuf.reader import ProtoReader
from walstream.formats.encodings.protobuf.schema_reader import BadProto

TEXT = """syntax = "proto3"; package a;
message M {
  // io.debezium.data.Bits length=3
  optional bytes bits = 1;
  // items: io.debezium.data.Uuid
  ArrayOfString ids = 2;
  // io.debezium.data.FloatVector
  ArrayOfFloat vector = 3;
  MapOfInt32ToDouble places = 4;
  map<string, int32> counts = 5;
  repeated PairEntry pairs = 6;
  Mood mood = 7;
  // see io.debezium.data.Json
  string plain = 8;
  int32 old = 9 [deprecated = true];
  message ArrayOfString { repeated string items = 1; repeated int32 nulls = 2; }
  message ArrayOfFloat { repeated float items = 1; repeated int32 nulls = 2; }
  message MapOfInt32ToDouble { repeated Entry entries = 1;
    message Entry { int32 key = 1; double value = 2; } }
  message PairEntry { int32 key = 1; string value = 2; }
  enum Mood { SAD = 0; OK = 1; }
}
"""


def test_each_is_what_it_stands_for() -> None:
    reader = ProtoReader(TEXT)
    message = message_class(TEXT)(
        bits=b"\5",
        ids={"items": ["x", ""], "nulls": [1, 7]},
        vector={"items": [1.1]},
        places={"entries": [{"key": 3, "value": 0.5}]},
        counts={"a": 1},
        pairs=[{"key": 2, "value": "b"}],
        mood=1,
        plain="p",
        old=3,
    )
    data = b"\0" + message.SerializeToString()
    assert reader.read(data, 0) == {
        "bits": "BQ==", "ids": ["x", None], "vector": [1.1], "places": [[3, 0.5]],
        "counts": {"a": 1}, "pairs": [[2, "b"]], "mood": "OK", "plain": "p",
    }  # fmt: skip
    fields = {one["field"]: one for one in reader.schema["fields"]}
    assert fields["bits"]["name"] == "io.debezium.data.Bits"
    assert fields["bits"]["parameters"] == {"length": "3"}
    assert fields["ids"]["items"]["name"] == "io.debezium.data.Uuid"
    assert fields["ids"]["optional"]
    assert fields["vector"]["name"] == "io.debezium.data.FloatVector"
    assert fields["places"]["type"] == "map"
    assert {ITEMS, NULLS} == {"items", "nulls"}  # as in the text
    assert fields["counts"]["keys"]["type"] == "string"
    assert "name" not in fields["plain"]


def test_what_is_not_there_is_null_or_empty() -> None:
    assert ProtoReader(TEXT).read(b"\0", 0) == {
        "bits": None, "ids": None, "vector": None, "places": None,
        "counts": {}, "pairs": [], "mood": "SAD", "plain": "",
    }  # fmt: skip
    assert ProtoReader(TEXT).read(b"\0\x38\7", 0)["mood"] == "7"


def test_parts_of_a_message_are_one() -> None:
    text = "message M { N n = 1; message N { int32 a = 1; int32 b = 2; } }"
    made = message_class(f'syntax = "proto3"; {text}')
    data = made(n={"a": 1}).SerializeToString() + made(n={"b": 2}).SerializeToString()
    assert ProtoReader(text).read(b"\0" + data, 0) == {"n": {"a": 1, "b": 2}}


def test_names_are_looked_for_from_the_innermost_message_on() -> None:
    text = """syntax = "proto3"; package a.b;
      message M { N n = 1; b.M.N o = 2; .a.b.N p = 3; message N { int32 inner = 1; } }
      message N { int32 outer = 1; }"""
    found = ProtoReader(text).read(b"\0\x0a\0\x12\0\x1a\0", 0)
    assert found == {"n": {"inner": 0}, "o": {"inner": 0}, "p": {"outer": 0}}


def test_a_message_may_hold_itself() -> None:
    reader = ProtoReader("message M { M m = 1; int32 x = 2; }")
    assert reader.read(b"\0\x0a\2\x10\1", 0) == {"m": {"m": None, "x": 1}, "x": 0}


def test_a_type_that_is_not_known_is_refused() -> None:
    with pytest.raises(BadProto, match=r"'x\.Y'"):
        ProtoReader("message M { x.Y y = 1; }")
