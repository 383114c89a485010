"""A pooler as some are set up: what a client's `options` say does not arrive."""

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

_HOST: Final = "127.0.0.1"
_LENGTH: Final = struct.Struct("!I")


@contextmanager
def pooler(to_port: int) -> Iterator[int]:
    """Stand between; give the port to connect to, without TLS."""
    with socket.create_server((_HOST, 0)) as listener:

        def accept() -> None:
            with suppress(OSError):
                while True:
                    client, _ = listener.accept()
                    threading.Thread(
                        target=_serve, args=(client, to_port), daemon=True
                    ).start()

        threading.Thread(target=accept, daemon=True).start()
        yield int(listener.getsockname()[1])
        listener.shutdown(socket.SHUT_RDWR)


def _serve(client: socket.socket, to_port: int) -> None:
    with (
        suppress(OSError),
        client,
        socket.create_connection((_HOST, to_port)) as server,
    ):
        (length,) = _LENGTH.unpack(client.recv(4, socket.MSG_WAITALL))
        server.sendall(_without_options(client.recv(length - 4, socket.MSG_WAITALL)))
        up = threading.Thread(target=_pass, args=(client, server), daemon=True)
        up.start()
        _pass(server, client)


def _without_options(startup: bytes) -> bytes:
    version, words = startup[:4], startup[4:].rstrip(b"\0").split(b"\0")
    kept = [
        name + b"\0" + value + b"\0"
        for name, value in zip(words[::2], words[1::2], strict=True)
        if name != b"options"
    ]
    body = version + b"".join(kept) + b"\0"
    return _LENGTH.pack(len(body) + 4) + body


def _pass(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(1 << 16):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
