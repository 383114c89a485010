"""`python -m bench.link`: a TCP link on which all arrives a fixed time later.

A process of its own, so that nothing of a benchmark delays it further. Each piece has
the time at which it came, and is passed on half an answer's time after that, whatever
came before it: many may be under way at once, as on a long line. It says "ready", then
for each line that it is told the number of bytes that clients sent through it, and ends
with its orders.
"""

import argparse
import queue
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

_HOST: Final = "127.0.0.1"
_PIECE: Final = 1 << 18

_Pieces = queue.SimpleQueue[tuple[float, bytes]]  # due at, and what; b"" is the end
_Count = Callable[[bytes], int]


@dataclass
class DelayLink:
    """Listens on a port, and passes all on to another one."""

    to_port: int
    answer_s: float
    port: int = 0  # 0: any, which is then here
    sent: int = 0  # bytes of clients' that were passed on
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._listener = socket.create_server((_HOST, self.port), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        _start(self._accept)

    def close(self) -> None:
        """Take no more connections; those that are there end with their clients."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                try:
                    server = socket.create_connection((_HOST, self.to_port))
                except OSError:
                    client.close()
                    continue
                for end in (client, server):
                    end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _start(self._serve, client, server)

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what both say; close both at the end of the last."""
        with client, server:
            threads = [
                *self._join(client, server, self._count),
                *self._join(server, client, len),
            ]
            for thread in threads:
                thread.join()

    def _count(self, piece: bytes) -> int:
        with self._lock:
            self.sent += len(piece)
            return self.sent

    def _join(
        self, come: socket.socket, go: socket.socket, count: _Count
    ) -> list[threading.Thread]:
        pieces: _Pieces = queue.SimpleQueue()
        return [
            _start(self._take, come, pieces),
            _start(self._give, go, pieces, count),
        ]

    def _take(self, end: socket.socket, pieces: _Pieces) -> None:
        piece = b"-"
        while piece:
            try:
                piece = end.recv(_PIECE)
            except OSError:
                piece = b""
            pieces.put((time.monotonic() + self.answer_s / 2, piece))

    def _give(self, end: socket.socket, pieces: _Pieces, count: _Count) -> None:
        while True:
            due, piece = pieces.get()
            if (early := due - time.monotonic()) > 0:
                time.sleep(early)
            count(piece)
            try:
                end.sendall(piece)
                if not piece:
                    end.shutdown(socket.SHUT_WR)
            except OSError:
                piece = b""
            if not piece:
                return


def _start(run: Callable[..., None], *told: object) -> threading.Thread:
    thread = threading.Thread(target=run, args=told, daemon=True)
    thread.start()
    return thread


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.link")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--to-port", type=int, required=True)
    parser.add_argument("--answer-ms", type=float, required=True)
    wanted = parser.parse_args()
    link = DelayLink(wanted.to_port, wanted.answer_ms / 1e3, wanted.port)
    print("ready", flush=True)
    for _ in sys.stdin:
        print(link.sent, flush=True)
    link.close()


if __name__ == "__main__":
    main()
