"""Values of scalar types, and of messages that others' schemas import."""

from datetime import UTC, datetime

import pytest

from tests.support.oracles.protobuf_values import message_class
from walstream.formats.encodings.protobuf.data import BadProtoData
from walstream.formats.encodings.protobuf.reader import ProtoReader
from walstream.formats.encodings.protobuf.values import KNOWN, SCALARS

VALUES = {
    "bool": True, "bytes": b"\0\xff", "double": 1e-7, "fixed32": (1 << 32) - 1,
    "fixed64": (1 << 64) - 1, "float": 1.5, "int32": -1, "int64": -(1 << 63),
    "sfixed32": -7, "sfixed64": -8, "sint32": -(1 << 31), "sint64": (1 << 63) - 1,
    "string": "ü", "uint32": (1 << 32) - 1, "uint64": (1 << 64) - 1,
}  # fmt: skip


@pytest.mark.parametrize("kind", [*SCALARS])
@pytest.mark.parametrize("label", ["", "optional", "repeated"])
def test_each_scalar_is_what_google_wrote(kind: str, label: str) -> None:
    text = f'syntax = "proto3"; message M {{ {label} {kind} x = 1; }}'
    value = VALUES[kind]
    told = [value, value] if label == "repeated" else value
    data = b"\0" + message_class(text)(x=told).SerializeToString()
    shown = "AP8=" if kind == "bytes" else value
    reader = ProtoReader(text)
    assert reader.read(data, 0) == {"x": [shown] * 2 if label == "repeated" else shown}
    empty = {"repeated": [], "optional": None}.get(label, SCALARS[kind][3])
    assert reader.read(b"\0", 0) == {"x": empty}


def test_numbers_may_be_packed_or_not() -> None:
    text = 'syntax = "proto3"; message M { repeated int32 x = 1 [packed = false]; }'
    data = b"\0" + message_class(text)(x=[1, 2]).SerializeToString() + b"\x0a\1\3"
    assert ProtoReader(text).read(data, 0) == {"x": [1, 2, 3]}


@pytest.mark.parametrize(
    ("name", "data", "shown"),
    [
        ("confluent.type.Decimal", b"\x0a\2\xfb\x2e\x10\6\x18\2", "-12.34"),
        ("confluent.type.Decimal", b"", "0"),
        (
            "confluent.type.Decimal",
            b"\x0a\1\7\x18\xfe\xff\xff\xff\xff\xff\xff\xff\xff\1",
            "700",
        ),
        ("google.type.Date", b"\x08\xe4\x0f\x10\2\x18\x1d", 18321),
        ("google.type.TimeOfDay", b"\x08\1\x10\2\x18\3\x20\x80\x89\x7a", 3723002),
        ("google.protobuf.StringValue", b"\x0a\1a", "a"),
        ("google.protobuf.Int64Value", b"", 0),
    ],
)
def test_messages_of_others_are_read(name: str, data: bytes, shown: object) -> None:
    text = f'syntax = "proto3"; import "x"; message M {{ {name} x = 1; }}'
    reader = ProtoReader(text)
    assert reader.read(b"\0\x0a" + bytes([len(data)]) + data, 0) == {"x": shown}
    assert reader.read(b"\0", 0) == {"x": None}
    (field,) = reader.schema["fields"]
    assert field["optional"]
    assert field["type"] == KNOWN[name][0]["type"]


def test_a_moment_of_googles_is_one_of_connects() -> None:
    text = 'syntax = "proto3"; message M { google.protobuf.Timestamp x = 1; }'
    moment = datetime(2020, 2, 29, 3, 4, 5, tzinfo=UTC).timestamp()
    whole = message_class('syntax = "proto3"; message T { int64 s = 1; int32 n = 2; }')
    inner = whole(s=int(moment), n=6_000_000).SerializeToString()
    data = b"\0\x0a" + bytes([len(inner)]) + inner
    assert ProtoReader(text).read(data, 0) == {"x": int(moment) * 1000 + 6}


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("string", b"\x0a\1\xff"),
        ("google.type.Date", b"\x0a\2\x10\x0d"),
        ("google.type.TimeOfDay", b"\x0a\3\x0a\1a"),
        ("confluent.type.Decimal", b"\x0a\2\x08\1"),
        ("int32", b"\x0a\1a"),
        ("string", b"\x08\1"),
    ],
)
def test_what_is_none_of_them_is_refused(kind: str, data: bytes) -> None:
    reader = ProtoReader(f'syntax = "proto3"; message M {{ {kind} x = 1; }}')
    with pytest.raises(BadProtoData):
        reader.read(b"\0" + data, 0)
