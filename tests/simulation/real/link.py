"""A link to a server that can be cut, and can hold back what the server answers."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

_HOST: Final = "127.0.0.1"
_MOST: Final = 1 << 16


class Link:
    """Listens on `port`. While `holds`, nothing that the server says passes."""

    def __init__(self, to_port: int, port: int) -> None:
        self.asked = 0  # bytes that clients sent
        self._to_port = to_port
        self._passes = threading.Event()
        self._passes.set()
        self._closed = False
        self._ends: list[socket.socket] = []
        self._listener = socket.create_server((_HOST, port))
        self._start(self._accept)

    @staticmethod
    def _start(run: Callable[..., None], *given: socket.socket) -> threading.Thread:
        thread = threading.Thread(target=run, args=given, daemon=True)
        thread.start()
        return thread

    def hold(self) -> None:
        """Let requests pass, and no answers."""
        self._passes.clear()

    def cut(self) -> None:
        """Close all connections: what was held back is lost."""
        ends, self._ends = self._ends, []
        self._shut(*ends)

    def release(self) -> None:
        """Let everything pass again."""
        self._passes.set()

    def _accept(self) -> None:
        while not self._closed:
            try:
                client, _ = self._listener.accept()
            except OSError:
                continue
            self._start(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        """Pass on what both say, until one is gone or cut; close both."""
        there = _HOST, self._to_port
        with (
            client,
            suppress(OSError),
            socket.create_connection(there) as server,
        ):
            self._ends += [client, server]
            up = self._start(self._up, client, server)
            self._down(client, server)
            self._shut(client, server)
            up.join()

    @staticmethod
    def _shut(*ends: socket.socket) -> None:
        for one in ends:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := client.recv(_MOST):
                self.asked += len(data)
                server.sendall(data)
        with suppress(OSError):
            server.shutdown(socket.SHUT_WR)

    def _down(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while data := server.recv(_MOST):
                while not self._passes.wait(0.01):
                    if client not in self._ends:
                        return
                if client not in self._ends:
                    return
                client.sendall(data)

    def close(self) -> None:
        self._closed = True
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.release()
        self.cut()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
