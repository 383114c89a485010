"""Any bytes decode or raise DecodeError; what a server writes decodes to what it meant.

The encoder of walstream.testing shares no code with the decoder.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.oracles.golden import all_payloads
from tests.support.strategies import messages
from walstream.errors import DecodeError
from walstream.pipeline.pgoutput import Message, decode
from walstream.testing import encode

GOLDEN = sorted(set(all_payloads()))


def refusal(payload: bytes) -> DecodeError | None:
    try:
        decode(payload)
    except DecodeError as error:
        return error
    return None


def told(payload: bytes, start: int = 0) -> tuple[object, ...]:
    """Return what becomes of bytes: a message, or all that a refusal says."""
    try:
        return ("message", repr(decode(payload, start)))
    except DecodeError as error:
        return (str(error), error.tag, error.offset)


def decodes_or_refuses(payload: bytes) -> None:
    for head in (b"w" * 25, b"\0", payload):  # no byte before it counts
        assert told(head + payload, len(head)) == told(payload)
    if error := refusal(payload):
        assert 0 <= error.offset <= len(payload)
        assert error.tag == (chr(payload[0]) if payload else "")


@given(st.binary())
def test_any_bytes_decode_or_raise_decode_error(payload: bytes) -> None:
    decodes_or_refuses(payload)


@given(st.sampled_from(b"BCORYIUDTM"), st.binary())
def test_any_bytes_behind_a_tag_decode_or_raise_decode_error(
    tag: int, rest: bytes
) -> None:
    decodes_or_refuses(bytes([tag]) + rest)


@given(st.sampled_from(GOLDEN), st.data())
def test_damaged_golden_payload_decodes_or_raises_decode_error(
    payload: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(payload)
    for _ in range(data.draw(st.integers(1, 4))):
        offset = data.draw(st.integers(0, min(len(payload) - 1, 200)))
        damaged[offset] = data.draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFF)))
    decodes_or_refuses(bytes(damaged))


@given(messages)
def test_what_a_server_writes_decodes_to_what_it_meant(message: Message) -> None:
    assert decode(encode(message)) == message


@given(messages)
def test_every_proper_prefix_is_refused(message: Message) -> None:
    payload = encode(message)
    for size in range(len(payload)):
        with pytest.raises(DecodeError):
            decode(payload[:size])


@given(messages, st.binary(max_size=30), st.data())
def test_in_a_frame_the_same_is_read_and_the_same_refused(
    message: Message, head: bytes, data: st.DataObject
) -> None:
    damaged = bytearray(encode(message))
    for _ in range(data.draw(st.integers(0, 3))):
        place = data.draw(st.integers(0, len(damaged) - 1))
        # among them lengths and counts of gigabytes
        damaged[place] = data.draw(st.sampled_from((0, 1, 0x7F, 0x80, 0xFF)))
    payload = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    assert told(head + payload, len(head)) == told(payload)


@given(st.binary(max_size=30), st.integers(0, 40))
def test_a_frame_that_ends_before_its_message_is_refused(
    frame: bytes, beyond: int
) -> None:
    assert told(frame, len(frame) + beyond) == told(b"")


@given(messages, st.binary(min_size=1, max_size=3))
def test_bytes_behind_a_message_are_refused(message: Message, more: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(encode(message) + more)


def test_every_proper_prefix_of_golden_payloads_is_refused() -> None:
    for payload in GOLDEN:
        for size in [*range(min(len(payload), 300)), len(payload) - 1]:
            with pytest.raises(DecodeError):
                decode(payload[:size])


def test_golden_payloads_are_written_as_the_server_wrote_them() -> None:
    for payload in GOLDEN:
        assert encode(decode(payload)) == payload
