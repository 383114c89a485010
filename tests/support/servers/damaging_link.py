"""A TCP link to a Kafka broker that damages one batch of each producer, the first.

The broker refuses a batch whose checksum is wrong, and a producer sends it again: what
it sent behind it meanwhile is the first batch that the broker takes.
"""

import socket
import threading
from contextlib import suppress
from typing import Final

from tests.support.servers.slow_link import SlowLink

_PRODUCE: Final = 0  # key of the request
_BATCH: Final = 61  # bytes of a batch's head, which a fixed length follows
_MAGIC, _CRC, _PRODUCER, _SEQUENCE = 16, 17, 43, 53  # where they are in it
_BEHIND_S: Final = 0.3  # for what is sent behind a damaged batch


class DamagingLink(SlowLink):
    """Passes a damaged batch on together with what follows."""

    def __init__(self, to_port: int, port: int = 0) -> None:
        self.damaged = 0  # batches
        self.producers: set[bytes] = set()  # ids of those that a batch was of
        self.sequence = 0  # of the first record in those that are damaged
        self._known: set[bytes] = set()  # of batches that were damaged
        self._lock = threading.Lock()
        super().__init__(to_port, port)

    def has_met(self, producers: int) -> bool:
        """Return whether a batch of so many producers was damaged."""
        return len(self.producers) >= producers

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        read = b""
        with suppress(OSError):
            while data := client.recv(1 << 16):
                read += data
                while (end := _frame_end(read)) <= len(read):
                    frame, read = read[:end], read[end:]
                    if (worse := self._damage(frame)) is not None:
                        client.settimeout(_BEHIND_S)
                        with suppress(TimeoutError):
                            while _frame_end(read) > len(read):
                                read += client.recv(1 << 16)
                        client.settimeout(None)
                    server.sendall(worse or frame)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _damage(self, frame: bytes) -> bytes | None:
        """Return the request with its first batches damaged; None: it has none."""
        if int.from_bytes(frame[4:6]) != _PRODUCE:
            return None
        worse = bytearray(frame)
        wanted = self.sequence.to_bytes(4)
        with self._lock:
            before = self.damaged
            for at in range(12, len(frame) - _BATCH + 1):
                if not _begins_batch(frame, at):
                    continue
                crc = frame[at + _CRC : at + _CRC + 4]
                producer = frame[at + _PRODUCER : at + _PRODUCER + 8]
                sequence = frame[at + _SEQUENCE : at + _SEQUENCE + 4]
                if sequence == wanted and producer + crc not in self._known:
                    self._known.add(producer + crc)
                    self.producers.add(producer)
                    worse[at + _CRC] ^= 0xFF
                    self.damaged += 1
            return bytes(worse) if self.damaged > before else None


def _frame_end(read: bytes) -> int:
    return 4 + int.from_bytes(read[:4]) if len(read) >= 4 else 1 << 40


def _begins_batch(frame: bytes, at: int) -> bool:
    """Return whether a batch of a producer lies there: base offset 0, and magic 2."""
    if frame[at : at + 8] != bytes(8) or frame[at + _MAGIC] != 2:
        return False
    size = int.from_bytes(frame[at + 8 : at + 12])
    return _BATCH - 12 <= size <= len(frame) - at - 12
