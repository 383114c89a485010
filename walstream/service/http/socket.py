"""The sockets that HTTP listens on: bound before anything is loaded to serve them."""

import errno
import socket
from collections.abc import Iterable
from typing import Any, Final

from walstream.errors import ConfigError

BACKLOG: Final = 256  # taken in one step: each costs a descriptor of the supervisor
_NOT_OURS: Final = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


def listen(address: str, key: str = "listen") -> list[socket.socket]:
    """Listen on each address of `host:port`, which this key of [http] has."""
    host, _, port = address.rpartition(":")
    try:
        found = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)
        return _bound(dict.fromkeys((one[0], one[4]) for one in found))
    except OSError as error:
        raise ConfigError(
            f"http.{key}: {address} is not available: {error.strerror}",
            hint="is another walstream running? Set another port, or"
            f' {key} = "" to switch it off',
        ) from None


def _bound(addresses: Iterable[tuple[int, Any]]) -> list[socket.socket]:
    """Bind to each address that this machine has; raise OSError where none is left."""
    sockets: list[socket.socket] = []
    lacking: OSError | None = None
    for family, where in addresses:
        one = socket.socket(family, socket.SOCK_STREAM)
        try:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            one.bind(where)
            one.listen(BACKLOG)
        except OSError as error:
            one.close()
            if error.errno not in _NOT_OURS:
                for other in sockets:
                    other.close()
                raise
            lacking = error
        else:
            sockets.append(one)
    if lacking is not None and not sockets:
        raise lacking
    return sockets


def said(one: socket.socket) -> str:
    """Name the address that it has."""
    host, port = one.getsockname()[:2]
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
