"""A free TCP port on loopback that stays ours while its server is down.

Not one that the kernel hands out: a client that tries to connect again and again to a
stopped server's port would sooner or later be given that very port, and be connected
with itself.
"""

import random
import socket
from collections import deque
from pathlib import Path
from typing import Final

HOST = "127.0.0.1"
_LOWEST = 15000
_TRIES = 200
# A server may ask for several ports before it listens on any of them.
_RECENT: Final[deque[int]] = deque(maxlen=_TRIES)


def free_port() -> int:
    """Free at this moment, and none of the last 200 that this process was told.

    A server that finds it taken asks for another.
    """
    chosen = random.SystemRandom()
    for _ in range(2 * _TRIES):
        port = chosen.randrange(_LOWEST, _first_ephemeral_port())
        if port not in _RECENT and is_free(port):
            _RECENT.append(port)
            return port
    raise OSError(f"no free port on {HOST} after {2 * _TRIES} tries")


def is_free(port: int) -> bool:
    """Whether a server may listen there now."""
    with socket.socket() as probe:
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _first_ephemeral_port() -> int:
    limits = Path("/proc/sys/net/ipv4/ip_local_port_range")
    first = int(limits.read_text(encoding="ascii").split()[0])
    return first if first > _LOWEST + 4 * _TRIES else 1 << 16
