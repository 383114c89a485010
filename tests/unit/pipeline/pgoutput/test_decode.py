"""One payload, one message: each tag with literal bytes, and every way to be none."""

import pytest

from walstream.errors import DecodeError
from walstream.pipeline.pgoutput import (
    Begin,
    Column,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    Origin,
    Relation,
    Truncate,
    Type,
    Update,
    decode,
)
from walstream.pipeline.pgoutput.decode import READERS
from walstream.row import UNCHANGED

ONE = b"\0\0\0\1"
LSN = bytes.fromhex("00000000016b3748")
TIME = bytes.fromhex("0002e8a4c7e3b100")
X = b"\0\1t\0\0\0\1x"

CASES: list[tuple[bytes, Message]] = [
    (b"B" + LSN + TIME + b"\0\0\2\xde", Begin(0x16B3748, 0x2E8A4C7E3B100, 734)),
    (
        b"C\0" + LSN + bytes.fromhex("00000000016b3778") + TIME,
        Commit(0, 0x16B3748, 0x16B3778, 0x2E8A4C7E3B100),
    ),
    (b"O" + LSN + b"up\0", Origin(0x16B3748, "up")),
    (
        b"R" + ONE + b"s\0t\0f\0\2"
        b"\1id\0\0\0\0\x17\xff\xff\xff\xff"
        b"\0v\0\0\0\x04\x13\0\0\0\x0e",
        Relation(
            1, "s", "t", "f", [Column(True, "id", 23, -1), Column(False, "v", 1043, 14)]
        ),
    ),
    (b"R" + ONE + b"\0t\0d\0\0", Relation(1, "pg_catalog", "t", "d", [])),
    (b"Y" + ONE + b"s\0mood\0", Type(1, "s", "mood")),
    (b"I" + ONE + b"N" + X, Insert(1, ["x"], toasted=False)),
    (b"I" + ONE + b"N\0\1u", Insert(1, [UNCHANGED], toasted=True)),
    (b"U" + ONE + b"N" + X, Update(1, None, False, ["x"], False)),
    (b"U" + ONE + b"K" + X + b"N" + X, Update(1, ["x"], False, ["x"], False)),
    (b"U" + ONE + b"O" + X + b"N\0\1u", Update(1, ["x"], True, [UNCHANGED], True)),
    (b"D" + ONE + b"K" + X, Delete(1, ["x"], old_whole=False)),
    (b"D" + ONE + b"O" + X, Delete(1, ["x"], old_whole=True)),
    (b"T\0\0\0\2\3" + ONE + b"\0\0\0\2", Truncate(3, (1, 2))),
    (
        b"M\1" + LSN + b"p\0\0\0\0\2\0\xff",
        LogicalMessage(True, 0x16B3748, "p", b"\0\xff"),
    ),
    (b"M\0" + LSN + b"\0\0\0\0\0", LogicalMessage(False, 0x16B3748, "", b"")),
]


@pytest.mark.parametrize(("payload", "message"), CASES)
def test_payload_decodes_to_its_message(payload: bytes, message: Message) -> None:
    assert decode(payload) == message


@pytest.mark.parametrize(("payload", "message"), CASES)
def test_cut_or_lengthened_payload_is_refused(payload: bytes, message: Message) -> None:
    del message
    for size in range(len(payload)):
        with pytest.raises(DecodeError):
            decode(payload[:size])
    with pytest.raises(DecodeError, match="bytes after its end") as refused:
        decode(payload + b"\0")
    assert refused.value.offset == len(payload)


def test_every_message_has_a_case() -> None:
    assert {payload[0] for payload, _ in CASES} == set(READERS)


@pytest.mark.parametrize(
    ("payload", "tag", "reason"),
    [
        (b"", "", "empty"),
        (b"Z", "Z", "unknown message"),
        (b"S", "S", "unknown message"),  # a streamed transaction: never asked for
        (b"\xff", "ÿ", "unknown message"),
        (b"Y" + ONE + b"s\0\xff\0", "Y", "not UTF-8"),
        (b"I" + ONE + b"N\0\1t\0\0\0\1\xff", "I", "not UTF-8"),
        (b"I" + ONE + b"K" + X, "I", "'K' where N"),
        (b"U" + ONE + b"X" + X, "U", "'X' where K or O or N"),
        (b"D" + ONE + b"N" + X, "D", "'N' where K or O"),
        (b"R" + ONE + b"s\0t\0x\0\0", "R", "'x' where d or n or f or i"),
        (b"T\xff\xff\xff\xff\0" + ONE, "T", "payload ends"),
    ],
)
def test_what_is_no_message_is_refused_with_tag_and_reason(
    payload: bytes, tag: str, reason: str
) -> None:
    with pytest.raises(DecodeError, match=reason) as refused:
        decode(payload)
    assert refused.value.tag == tag
    assert 0 <= refused.value.offset <= len(payload)


def test_error_never_holds_a_value() -> None:
    secret = b"\0\1t\0\0\0\6hunter"
    with pytest.raises(DecodeError) as refused:
        decode(b"I" + ONE + b"N" + secret + b"more")
    assert "hunter" not in str(refused.value)


def test_what_was_not_sent_of_the_old_row_says_nothing_of_the_new() -> None:
    head, old, new = b"U\0\0\0\1", b"O\0\1u", b"N\0\1t\0\0\0\1x"
    update = decode(head + old + new)
    assert isinstance(update, Update)
    assert (update.old, update.new, update.toasted) == ([UNCHANGED], ["x"], False)
