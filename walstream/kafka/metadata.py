"""Names of a cluster's brokers, asked over a socket, without connecting to them.

A librdkafka client connects to each broker that it learns of, and logs in, before it
returns their names. Metadata of Kafka's protocol, version 4: of no topic.
"""

import socket
import struct
from typing import Final

_KEY: Final = 3
_VERSION: Final = 4  # of Kafka 0.11 and later; the first that says to create no topic
_CLIENT: Final = b"walstream"
# of no topic, and none is to be created
_REQUEST: Final = struct.Struct(f"!hhih{len(_CLIENT)}si?")
_SIZE: Final = struct.Struct("!i")
_SHORT: Final = struct.Struct("!h")
_LARGEST: Final = 16 << 20  # bytes; more is no answer of Kafka's


class NotKafka(OSError):
    """The answer does not come from a Kafka broker."""


def hosts(connection: socket.socket) -> list[str]:
    """Ask where brokers say that they are; OSError where no answer comes."""
    body = _REQUEST.pack(_KEY, _VERSION, 1, len(_CLIENT), _CLIENT, 0, 0)
    connection.sendall(framed(body))
    answer = read_frame(connection)
    if answer is None:
        raise NotKafka("the connection was closed before an answer came")
    try:
        return _hosts_in(answer)
    except (struct.error, UnicodeDecodeError):
        raise NotKafka("the answer is not Kafka's") from None


def _hosts_in(answer: bytes) -> list[str]:
    """Read them; in front is the request's number, and a time to wait."""
    (count,) = _SIZE.unpack_from(answer, 8)
    found, at = [], 12
    for _ in range(count):
        host, at = _text(answer, at + 4)  # behind the broker's number
        _, at = _text(answer, at + 4)  # behind the port: its rack
        found.append(host)
    return found


def _text(answer: bytes, at: int) -> tuple[str, int]:
    (length,) = _SHORT.unpack_from(answer, at)
    at += _SHORT.size
    end = at + max(length, 0)  # -1 is null
    if end > len(answer):
        raise struct.error("a text extends beyond the end")
    return answer[at:end].decode(), end


def framed(body: bytes) -> bytes:
    """Put its size in front, as on the wire."""
    return _SIZE.pack(len(body)) + body


def read_frame(connection: socket.socket) -> bytes | None:
    """Read what has its size in front; None: the other side closed."""
    head = _read(connection, _SIZE.size)
    if head is None:
        return None
    (size,) = _SIZE.unpack(head)
    if not 0 <= size <= _LARGEST:
        raise NotKafka("the answer is not Kafka's")
    return _read(connection, size)


def _read(connection: socket.socket, size: int) -> bytes | None:
    found = bytearray()
    while len(found) < size:
        more = connection.recv(size - len(found))
        if not more:
            return None
        found += more
    return bytes(found)
