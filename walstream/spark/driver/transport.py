"""Pickles over a local socket, to and from processes of the same user alone.

Its file in the state folder lets no other user connect, who could start Spark by that.
And both ends ask the kernel whose process is at the other.
"""

import os
import pickle
import socket
import struct
from pathlib import Path
from typing import Any, Final

from walstream.errors import PermissionLacking
from walstream.state.control import socket_address

SOCKET: Final = "spark.sock"
_LENGTH: Final = struct.Struct("!Q")
_CREDENTIALS: Final = struct.Struct("3i")  # pid, uid, gid


def listen(folder: Path) -> socket.socket:
    """Listen in a folder that is ours alone: what a predecessor left is replaced."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        (folder / SOCKET).unlink(missing_ok=True)
        with socket_address(folder, SOCKET) as address:
            listener.bind(address)
        (folder / SOCKET).chmod(0o600)  # before it listens: nobody connected yet
        listener.listen(64)
    except BaseException:
        listener.close()
        raise
    return listener


def connect(folder: Path) -> socket.socket:
    """Connect to who listens in this folder; raise OSError when nobody does."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with socket_address(folder, SOCKET) as address:
            connection.connect(address)
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
        raise PermissionLacking("Spark's socket: the other end belongs to another user")


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
