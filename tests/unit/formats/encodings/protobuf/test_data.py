"""Data of protobuf, as far as it is there."""

import pytest

from walstream.formats.encodings.protobuf.data import (
    BadProtoData,
    ProtoData,
    double,
    single,
)


def test_each_wire_type_is_read() -> None:
    data = ProtoData(b"\x08\x96\x01" + b"\x12\2ab" + b"\x19" + b"\1" * 8 + b"\x25abcd")
    found = []
    while data.more:
        number, wire = data.tag()
        found.append((number, data.value(wire)))
    assert found == [(1, 150), (2, b"ab"), (3, b"\1" * 8), (4, b"abcd")]
    assert ProtoData(b"\xff" * 9 + b"\1").varint() == (1 << 64) - 1
    assert (single(b"\0\0\x80\x3f"), double(b"\0" * 6 + b"\xf0\x3f")) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x08", "ends"),
        (b"\x08\x80", "ends"),
        (b"\x08" + b"\xff" * 9 + b"\2", "64 bits"),
        (b"\x12\3ab", "length"),
        (b"\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\1", "length"),
        (b"\x19abc", "length"),
        (b"\x0b", "group"),
        (b"\x0f", "group"),
    ],
)
def test_what_is_not_there_is_refused(data: bytes, reason: str) -> None:
    rest = ProtoData(data)
    with pytest.raises(BadProtoData, match=reason):
        rest.value(rest.tag()[1])
