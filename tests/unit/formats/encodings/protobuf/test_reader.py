"""Records of protobuf as documents of JSON."""

import pytest

from tests.support.oracles.protobuf_values import message_class
from walstream.formats.encodings.protobuf.data import BadProtoData
from walstream.formats.encodings.protobuf.reader import ProtoReader

TEXT = """syntax = "proto3"; package a;
message First { int32 x = 1; }
message Second { string y = 1; message In { bool z = 1; } }
"""


def test_a_record_is_of_the_message_that_it_names() -> None:
    reader = ProtoReader(TEXT)
    assert reader.names == ("x",)
    assert reader.schema["name"] == "a.First"
    head = b"\0\0\0\0\7"
    assert reader.read(head + b"\0\x08\5") == {"x": 5}
    assert reader.read(head + b"\2\0\x08\5") == {"x": 5}  # one index, and that is 0
    second = message_class(TEXT, "Second")(y="a").SerializeToString()
    assert reader.read(head + b"\2\2" + second) == {"y": "a"}
    assert reader.read(head + b"\4\2\0\x08\1") == {"z": True}


@pytest.mark.parametrize(
    "data", [b"", b"\2", b"\2\4", b"\2\1", b"\4\0\0", b"\1", b"\x7e", b"\0\x00\1"]
)
def test_what_names_none_is_refused(data: bytes) -> None:
    with pytest.raises(BadProtoData):
        ProtoReader(TEXT).read(data, 0)


def test_what_is_too_deep_is_refused() -> None:
    data = b""
    for _ in range(3000):
        size = len(data)
        data = (
            b"\x0a"
            + bytes([size & 127 | 128, size >> 7 & 127 | 128, size >> 14])
            + data
        )
    with pytest.raises(BadProtoData, match="deep"):
        ProtoReader("message M { M m = 1; }").read(b"\0" + data, 0)
