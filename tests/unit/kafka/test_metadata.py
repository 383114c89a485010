"""What brokers answer of themselves, byte by byte, and what is no answer of theirs."""

import socket
import struct
from collections.abc import Callable

import pytest

from tests.support.servers.mock_kafka import Mocked
from walstream.kafka.metadata import NotKafka, framed, hosts, read_frame

_FRONT = struct.pack("!ii", 1, 0)  # the request's number, and a time to wait


def text(written: str | None) -> bytes:
    if written is None:
        return struct.pack("!h", -1)
    return struct.pack("!h", len(written.encode())) + written.encode()


def answer(*named: str, rack: str | None = None) -> bytes:
    """Make the answer of brokers at these hosts, of no topic."""
    found = b"".join(
        struct.pack("!i", number) + text(host) + struct.pack("!i", 9092) + text(rack)
        for number, host in enumerate(named)
    )
    rest = text("cluster") + struct.pack("!ii", 0, 0)
    return framed(_FRONT + struct.pack("!i", len(named)) + found + rest)


def asked(said: bytes) -> list[str]:
    """Ask one who says this, and closes."""
    ours, its = socket.socketpair()
    with ours, its:
        its.sendall(said)
        its.shutdown(socket.SHUT_WR)
        return hosts(ours)


def test_hosts_are_read_with_and_without_racks() -> None:
    assert asked(answer("a.example", "10.0.0.1")) == ["a.example", "10.0.0.1"]
    assert asked(answer("ä.example", rack="r1")) == ["ä.example"]
    assert asked(answer()) == []


def test_the_question_is_of_no_topic_and_creates_none() -> None:
    ours, its = socket.socketpair()
    with ours, its:
        its.sendall(answer("a"))
        hosts(ours)
        request = read_frame(its)
    assert request == b"\x00\x03\x00\x04\x00\x00\x00\x01\x00\x09walstream" + bytes(5)


def test_a_real_answer() -> None:
    mocked = Mocked()
    host, _, port = mocked.bootstrap.partition(":")
    with socket.create_connection((host, int(port))) as connection:
        assert hosts(connection) == [host]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda _: b"",
        lambda said: said[:3],
        lambda said: said[:-1],
        lambda _: b"HTTP/1.1 400 Bad Request\r\n",
        lambda _: framed(_FRONT),
        lambda _: framed(_FRONT + struct.pack("!i", 9)),
        lambda _: framed(_FRONT + struct.pack("!iih", 1, 1, 99) + b"short"),
        lambda _: framed(_FRONT + struct.pack("!iih", 1, 1, 1) + b"\xff" + bytes(6)),
        lambda _: struct.pack("!i", -1),
    ],
)
def test_what_is_no_answer_is_an_error_of_the_connection(
    spoil: Callable[[bytes], bytes],
) -> None:
    with pytest.raises(NotKafka):
        asked(spoil(answer("a")))
