"""A TCP link to a server that lets through so many bytes a second, or none at all."""

import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Final, Self

_TURN_S: Final = 0.02
_HOST: Final = "127.0.0.1"


class SlowLink:
    """Listens on `port`; `rate` is of what the server says, None is no limit."""

    def __init__(self, to_port: int, port: int = 0) -> None:
        self.rate: int | None = None  # bytes a second
        self.passed = 0  # bytes of the server's, of all connections
        self._to_port = to_port
        self._closed = threading.Event()
        self._listener = socket.create_server((_HOST, port))
        self._sockets = [self._listener]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    def _accept(self) -> None:
        while not self._closed.is_set():
            try:
                client, _ = self._listener.accept()
                # a small window: what waits is to wait at the server
                server = socket.socket()
                server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
                server.connect((_HOST, self._to_port))
            except OSError:
                return
            self._sockets += [client, server]
            for pump, ends in (
                (self._up, (client, server)),
                (self._down, (server, client)),
            ):
                thread = threading.Thread(target=pump, args=ends, daemon=True)
                self._threads.append(thread)
                thread.start()

    def _up(self, client: socket.socket, server: socket.socket) -> None:
        try:
            while data := client.recv(1 << 16):
                server.sendall(data)
            server.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def _down(self, server: socket.socket, client: socket.socket) -> None:
        try:
            while not self._closed.is_set():
                rate = self.rate
                if rate == 0:
                    self._closed.wait(_TURN_S)
                    continue
                size = 1 << 16 if rate is None else max(1, int(rate * _TURN_S))
                data = server.recv(size)
                if not data:
                    break
                client.sendall(data)
                self.passed += len(data)
                if rate is not None:
                    time.sleep(len(data) / rate)
            client.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def close(self) -> None:
        self._closed.set()
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
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
