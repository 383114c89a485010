"""Texts of proto files."""

import pytest

from walstream.formats.encodings.protobuf.message import ProtoField
from walstream.formats.encodings.protobuf.schema_reader import BadProto, parsed_proto

CONVERTERS = """
// Proto schema formatted by Wire, do not edit.
syntax = "proto3";
package app.public.t;

import "confluent/meta.proto";
import "confluent/type/decimal.proto";
option java_package = "x";

message Envelope {
  option (confluent.message_meta) = { params: [ { key: "a;}", value: "b" } ] };
  reserved 4, 6 to 8, 100 to max;
  reserved 'old', "older";
  Value before = 1 [(confluent.field_meta) = { params: [
    { value: "int16", key: "connect.type" }] }];
  optional confluent.type.Decimal n = 2 [deprecated = true, json_name = "m"];
  oneof which { string a = 3; .app.public.t.Envelope.Value b = 5; }
  map<string, int64> counts = 9;
  /* of all */
  repeated Mood moods = 0x0A;
  message Value { int32 message = 1; string optional = 2; bool reserved = 3; ; }
  enum Mood { option allow_alias = true; SAD = 0; OK = 1; OFF = -1 [deprecated = true];
    reserved 5; }
}
enum Top { ZERO = 0; }
message Other {}
"""


def test_what_converters_write_is_read() -> None:
    file = parsed_proto(CONVERTERS)
    assert file.name == "app.public.t.Envelope"
    assert [one.name for one in file.messages] == ["Envelope", "Other"]
    first = file.first
    assert first.reserved == ((4, 4), (6, 8), (100, (1 << 29) - 1))
    assert first.reserved_names == ("old", "older")
    assert first.fields[0] == ProtoField("before", "Value", "", 1)
    assert first.fields[1].gone
    assert [one.label for one in first.fields[2:4]] == ["optional", "optional"]
    assert first.fields[4].type == "CountsEntry"
    assert first.fields[5] == ProtoField("moods", "Mood", "repeated", 10, "of all")
    assert first.enums == (("Mood", ((0, "SAD"), (1, "OK"), (-1, "OFF"))),)
    assert file.enums == (("Top", ((0, "ZERO"),)),)
    value = first.message("Value")
    assert value is not None
    assert [*value.live] == ["message", "optional", "reserved"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no message"),
        ('syntax = "proto9"; message A {}', "syntax"),
        ("message A { int32 a = 1; int64 b = 1; }", "one number"),
        ("message A { int32 a = 1; int64 a = 2; }", "one name"),
        ("message A { int32 a = 0; }", "number that none"),
        ("message A { int32 a = 536870912; }", "number that none"),
        ("message A { int32 a = x; }", "'x'"),
        ("message A { int32 a; }", "';'"),
        ("message A { int32 a.b = 1; }", "'a.b'"),
        ("message A {", "ends"),
        ("message A { extensions 4 to 5; }", "'4'"),
        ("service S { rpc R (A) returns (A); }", "'service'"),
        ("message A {} €", "not a part"),
        ('message A { int32 a = 1 [x = "', "not a part"),
        ("message A {" * 70 + "}" * 70, "deep"),
    ],
)
def test_what_is_none_is_refused(text: str, reason: str) -> None:
    with pytest.raises(BadProto, match=reason):
        parsed_proto(text)


def test_a_text_without_numbers_is_read_as_such() -> None:
    text = 'syntax = "proto3"; message A { // it says\n int32 a; repeated B b; }'
    assert parsed_proto(text, bare=True).first.fields == (
        ProtoField("a", "int32", says="it says"),
        ProtoField("b", "B", "repeated"),
    )
