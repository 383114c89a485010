"""A PostgreSQL that refuses each session, in a language of one's choice."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_TLS_OR_GSS = {80877103, 80877104}  # requests for encryption, by their code


@contextmanager
def refusing(severity: str, state: str, words: str) -> Iterator[int]:
    """Give the port of one that answers each startup packet with this error."""
    fields = {
        b"S": severity,
        b"V": "FATAL",
        b"C": state,
        b"M": words,
        b"F": "auth.c",
        b"L": "337",
        b"R": "auth_failed",
    }
    body = b"".join(k + text.encode() + b"\0" for k, text in fields.items()) + b"\0"
    error = b"E" + (len(body) + 4).to_bytes(4, "big") + body
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=_serve, args=(listening, error), daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        thread.join(10)


def _serve(listening: socket.socket, error: bytes) -> None:
    with suppress(OSError):  # shut down: the test is over
        while True:
            session, _ = listening.accept()
            with session, suppress(OSError):
                _refuse(session, error)


def _refuse(session: socket.socket, error: bytes) -> None:
    session.settimeout(10)
    while packet := session.recv(4096):
        if int.from_bytes(packet[4:8], "big") in _TLS_OR_GSS:
            session.sendall(b"N")
            continue
        session.sendall(error)
        return
