"""Texts of schemas, before their fields have numbers."""

import pytest

from walstream.errors import ConfigError
from walstream.formats.debezium import DebeziumOptions, EnvelopeEncoder, SinkTurn
from walstream.formats.debezium.connect import Schema, array, number, struct, text
from walstream.formats.debezium.connect_type import VARIABLE, decimal
from walstream.formats.encodings.protobuf import proto_shape
from walstream.op import Table

SHOWN = """\
syntax = "proto3";
package a.b;

message Value {
  bool flag;
  optional int32 small;
  // io.debezium.time.MicroTimestamp
  int64 at;
  // io.debezium.data.Enum
  string mood;
  // io.debezium.data.Bits length=3
  bytes bits;
  // decimal scale=2 precision=6
  optional string price;
  // decimal
  string any;
  Point Point_;
  // items: io.debezium.data.Uuid
  ArrayOfString ids;
  // io.debezium.data.FloatVector
  ArrayOfFloat vector;
  MapOfStringToString pairs;

  // x.Point
  message Point {
    double x;
  }

  message ArrayOfString {
    repeated string items;
    repeated int32 nulls;
  }

  message ArrayOfFloat {
    repeated float items;
    repeated int32 nulls;
  }

  message MapOfStringToString {
    repeated Entry entries;

    message Entry {
      string key;
      optional string value;
    }
  }
}
"""


def test_each_type_has_its_form() -> None:
    vector = Schema(
        "array", name="io.debezium.data.FloatVector", version=1, items=Schema("float")
    )
    schema = struct(
        "a.b.Value",
        ("flag", Schema("boolean")),
        ("small", Schema("int16", optional=True)),
        ("at", number("int64", "io.debezium.time.MicroTimestamp")),
        ("mood", text("io.debezium.data.Enum", allowed="sad,ok")),
        (
            "bits",
            Schema(
                "bytes", name="io.debezium.data.Bits", parameters=(("length", "3"),)
            ),
        ),
        ("price", decimal(2, 6).as_optional()),
        ("any", VARIABLE),
        ("Point_", struct("x.Point", ("x", Schema("double")))),
        ("ids", array(text("io.debezium.data.Uuid").as_optional())),
        ("vector", vector),
        ("pairs", Schema("map", keys=text(), values=text().as_optional())),
    )
    assert proto_shape(schema).text() == SHOWN


def test_an_envelope_declares_a_row_once() -> None:
    table = Table("public", "t", ("id", "v"), (0,), (23, 25))
    encoder = EnvelopeEncoder(table, DebeziumOptions("app"), SinkTurn())
    shown = proto_shape(encoder.schema).text()
    assert "package app.public.t;" in shown
    assert (
        "  optional Value before;\n  optional Value after;\n  Source source;" in shown
    )
    assert shown.count("message Value {") == 1


def test_a_type_that_a_field_is_named_after_has_another_name() -> None:
    """As Confluent's converter has it; two types of one name differ, too."""
    point = struct("x.Point", ("x", Schema("double")))
    other = struct("y.Point", ("y", Schema("double")))
    shape = proto_shape(struct("a.V", ("Point", point), ("q", other), ("r", point)))
    types = [field.type for field in shape.first.fields]
    assert types == ["PointMessage", "PointMessage_", "PointMessage"]


@pytest.mark.parametrize(
    ("name", "package", "message"),
    [
        ("a.2b.C-d", "a._2b", "C_d"),
        ("V", "", "V"),
        ("a..V", "a._", "V"),
        ("ä.V", "_", "V"),
    ],
)
def test_names_are_such_as_protobuf_allows(
    name: str, package: str, message: str
) -> None:
    shape = proto_shape(struct(name))
    assert (shape.package, shape.first.name) == (package, message)


@pytest.mark.parametrize("name", ["a-b", "2a", "", "ä"])
def test_the_name_of_a_field_is_refused_else(name: str) -> None:
    with pytest.raises(ConfigError, match="does not allow"):
        proto_shape(struct("a.V", (name, text())))


@pytest.mark.parametrize("pair", [("a_1", "a1"), ("_deleted", "__deleted")])
def test_names_that_are_one_in_json_are_refused(pair: tuple[str, str]) -> None:
    with pytest.raises(ConfigError, match="same name in the JSON"):
        proto_shape(struct("a.V", *((name, text()) for name in pair)))
