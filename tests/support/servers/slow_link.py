"""A TCP link to a server: it may be slow, hold answers back, and be cut."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

_TURN_S: Final = 0.02
_HOST: Final = "127.0.0.1"


class SlowLink:
    """Listens on `port`; `rate` is of what the server says, None is no limit.

    At 0 requests pass, and no answers.
    """

    def __init__(self, to_port: int, port: int = 0) -> None:
        self.rate: int | None = None  # bytes a second
        self.passed = 0  # bytes of the server's, of all connections
        self.asked = 0  # bytes of the clients'
        self._to_port = to_port
        self._closed = threading.Event()
        self._listener = socket.create_server((_HOST, port))
        self._whole: set[socket.socket] = set()  # ends that were not cut
        self._threads: list[threading.Thread] = []
        self._start(self._accept)

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            # a small window: what waits is to wait at the server
            server = socket.socket()
            server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
            try:
                server.connect((_HOST, self._to_port))
            except OSError:
                client.close()
                server.close()
                continue
            self._whole.update((client, server))
            self._start(self._serve, client, server)

    def _start(
        self, run: Callable[..., None], *ends: socket.socket
    ) -> threading.Thread:
        thread = threading.Thread(target=run, args=ends, daemon=True)
        thread.start()
        self._threads.append(thread)
        return thread

    def _serve(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what both say; close both at the end of the last."""
        with client, server:
            up = self._start(self._up, client, server)
            self._down(server, client)
            up.join()
            self._whole.difference_update((client, server))

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(1 << 16):
                self.asked += len(data)
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _down(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while self._opens(server):
                rate = self.rate
                size = 1 << 16 if rate is None else max(1, int((rate or 0) * _TURN_S))
                data = server.recv(size)
                if not data:
                    break
                if not self._opens(server):  # it may have been closed to it meanwhile
                    return
                client.sendall(data)
                self.passed += len(data)
                if rate is not None:
                    time.sleep(len(data) / rate)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def _opens(self, server: socket.socket) -> bool:
        """Wait while nothing is let through; False: the connection was cut."""
        while self.rate == 0 and server in self._whole:
            if self._closed.wait(_TURN_S):
                return False
        return server in self._whole and not self._closed.is_set()

    def cut(self) -> None:
        """End all connections: what was held back is lost."""
        ends = [*self._whole]
        self._whole.clear()
        for one in ends:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._closed.set()
        self.cut()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
