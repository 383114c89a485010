"""Pickles over a local socket, to and from processes of the same user alone.

The socket has no name in the file system: Linux gives it an abstract one, which ends
with who listens. So both ends ask the kernel whose process is at the other.
"""

import os
import pickle
import socket
import struct
from typing import Any, Final

from walstream.errors import PermissionLacking

_LENGTH: Final = struct.Struct("!Q")
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid


def listen() -> socket.socket:
    """Listen under a name that the kernel chooses."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind("")
    listener.listen(64)
    return listener


def address(listener: socket.socket) -> str:
    """Give the name, as text."""
    name = listener.getsockname()
    return bytes(name).hex()


def connect(where: str) -> socket.socket:
    """Connect to what `address` gave; raise OSError when nobody listens."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(bytes.fromhex(where))
        check_peer(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def check_peer(connection: socket.socket) -> None:
    """Raise PermissionLacking unless the other end is a process of this user."""
    told = connection.getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
    )
    _, uid, _ = _CREDENTIALS.unpack(told)
    if uid != os.getuid():
        raise PermissionLacking("Spark's socket: the other end is another user's")


def send(connection: socket.socket, message: Any) -> None:
    """Send one; wait until the kernel has taken it."""
    body = pickle.dumps(message)
    connection.sendall(_LENGTH.pack(len(body)) + body)


def receive(connection: socket.socket) -> Any:
    """Receive one; raise EOFError at the end."""
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    return pickle.loads(_exactly(connection, length))  # noqa: S301 - its user is ours


def _exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(min(size - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)
