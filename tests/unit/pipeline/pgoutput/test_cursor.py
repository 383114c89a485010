"""Every length is checked before it is used."""

from collections.abc import Callable

import pytest

from walstream.pipeline.pgoutput.cursor import Cursor, Malformed
from walstream.row import UNCHANGED


def cursor(*parts: bytes) -> Cursor:
    return Cursor(b"?" + b"".join(parts), 0)  # a cursor begins behind the tag


@pytest.mark.parametrize(
    ("read", "encoded", "value"),
    [
        (Cursor.u8, b"\xff", 255),
        (Cursor.u16, b"\xff\xfe", 65534),
        (Cursor.u32, b"\xff\xff\xff\xfe", 2**32 - 2),
        (Cursor.i32, b"\xff\xff\xff\xff", -1),
        (Cursor.u64, b"\xff" * 8, 2**64 - 1),
        (Cursor.i64, b"\xff" * 8, -1),
    ],
)
def test_number_is_read_whole_or_not_at_all(
    read: Callable[[Cursor], int], encoded: bytes, value: int
) -> None:
    at = cursor(encoded, b"rest")
    assert read(at) == value
    assert at.offset == 1 + len(encoded)
    short = cursor(encoded[:-1])
    with pytest.raises(Malformed, match="payload ends") as refused:
        read(short)
    assert refused.value.offset == 1


def test_string_ends_at_its_nul_byte() -> None:
    at = cursor("é".encode(), b"\0next\0")
    assert (at.string(), at.string()) == ("é", "next")
    with pytest.raises(Malformed, match="without its end"):
        cursor(b"abc").string()


def test_content_may_hold_any_byte() -> None:
    assert cursor(b"\0\0\0\2\0\xff!").content() == b"\0\xff"
    with pytest.raises(Malformed):
        cursor(b"\0\0\0\3\0\xff").content()


def test_tag_is_one_of_those_allowed() -> None:
    assert cursor(b"K").tag(b"KO") == ord("K")
    with pytest.raises(Malformed, match="'X' where K or O") as refused:
        cursor(b"X").tag(b"KO")
    assert refused.value.offset == 1


def test_tuple_keeps_null_empty_and_unchanged_apart() -> None:
    at = cursor(b"\0\4", b"t\0\0\0\1x", b"n", b"t\0\0\0\0", b"u")
    assert at.tuple_data() == ["x", None, "", UNCHANGED]
    assert at.toasted


def test_tuple_without_unchanged_values_says_so() -> None:
    at = cursor(b"\0\1n")
    at.tuple_data()
    assert not at.toasted


@pytest.mark.parametrize(
    ("encoded", "reason"),
    [
        (b"", "payload ends"),
        (b"\0", "payload ends"),
        (b"\0\1", "payload ends"),
        (b"\0\2n", "payload ends"),
        (b"\0\1t\0\0\0", "length expected"),
        (b"\0\1t\0\0\0\2x", "longer than its payload"),
        (b"\0\1t\xff\xff\xff\xff", "longer than its payload"),  # -1, were it signed
        (b"\0\1t\x7f\xff\xff\xffx", "longer than its payload"),
        (b"\0\1b\0\0\0\1x", "kind 'b'"),  # binary: never asked for
        (b"\0\1?", "kind"),
    ],
)
def test_damaged_tuple_is_refused(encoded: bytes, reason: str) -> None:
    with pytest.raises(Malformed, match=reason):
        cursor(encoded).tuple_data()


def test_a_tuple_may_have_many_columns() -> None:
    assert cursor(b"\x06\x40" + b"n" * 1600).tuple_data() == [None] * 1600


@pytest.mark.parametrize("size", [0x0203, 0x010203, 0x01020304])
def test_each_byte_of_a_length_counts(size: int) -> None:
    at = cursor(b"\0\2t", size.to_bytes(4, "big"), b"x" * size, b"t\0\0\0\1y")
    assert at.tuple_data() == ["x" * size, "y"]


def test_what_is_wrong_is_said_alone() -> None:
    with pytest.raises(Malformed) as refused:
        cursor(b"abc").string()
    assert str(refused.value) == "string without its end"
