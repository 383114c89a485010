"""A client of a walsender, a simulated one or a real one: both have libpq's calls."""

import time
from collections.abc import Callable
from struct import Struct
from typing import Any, Final

from walstream.lsn import Lsn

_STATUS: Final = Struct("!cQQQqB").pack
_KEEPALIVE: Final = Struct("!xQQB").unpack
_TELLS_END: Final = b"k"
_PATIENCE_S: Final = 60.0
_TURN_S: Final = 0.02


class Client:
    """A stream that was begun; `wait` lets its server go on."""

    def __init__(self, pgconn: Any, wait: Callable[[float], object]) -> None:
        self._pgconn = pgconn
        self._wait = wait
        self.told: Lsn = 0  # all below was sent, says the server

    def read(self, end: Lsn) -> list[bytes]:
        """Take frames until the server answers that it sent all below `end`."""
        frames: list[bytes] = []
        answered = False
        deadline = time.monotonic() + _PATIENCE_S
        while not answered or self.told < end:
            assert time.monotonic() < deadline, f"told {self.told:X}, and not {end:X}"
            self.status(reply=True)
            self._wait(_TURN_S)
            taken = self._take()
            answered |= any(frame[:1] == _TELLS_END for frame in taken)
            frames += taken
        return frames

    def _take(self) -> list[bytes]:
        frames: list[bytes] = []
        self._pgconn.consume_input()
        while True:
            size, data = self._pgconn.get_copy_data(1)
            if size <= 0:
                return frames
            frame = bytes(data)
            frames.append(frame)
            if frame[:1] == _TELLS_END:
                self.told = max(self.told, _KEEPALIVE(frame)[0])

    def status(self, *, flush: Lsn = 0, reply: bool = False) -> None:
        self._pgconn.put_copy_data(
            _STATUS(b"r", self.told, flush, flush, 0, int(reply))
        )
        self._pgconn.flush()

    def end(self) -> None:
        """End the stream as the protocol has it."""
        self._pgconn.put_copy_end()
        self._pgconn.flush()
        deadline = time.monotonic() + _PATIENCE_S
        while not self._is_over():
            assert time.monotonic() < deadline, "the stream does not end"
            self._wait(_TURN_S)

    def _is_over(self) -> bool:
        self._pgconn.consume_input()
        return bool(self._pgconn.get_copy_data(1)[0] < 0)
