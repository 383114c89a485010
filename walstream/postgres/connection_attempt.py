"""The beginning of a session, whose failure names the SQLSTATE of the server's refusal.

psycopg has no field for it, and the server's words are in the language of its
lc_messages. libpq adds the SQLSTATE to them if a connection is verbose, for which
psycopg has no call: libpq's own is made, in the very library that psycopg loaded.
"""

import ctypes
import math
import re
import sys
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Self

import psycopg
from psycopg import pq
from psycopg.waiting import Wait

from walstream.telemetry import runtime

if TYPE_CHECKING:
    from psycopg.abc import PQGenConn
    from psycopg.pq.abc import PGconn

_DEFAULT: Final = 1  # PGVerbosity
_VERBOSE: Final = 2
_STATE: Final = re.compile(r"(?<=:  )([0-9A-Z]{5}): ")  # behind the severity
_LOCATION: Final = re.compile(r"^LOCATION:  .*\n?", re.MULTILINE)  # in the source

Setter = Callable[[int | None, int], int]


def refusal(text: str) -> tuple[tuple[str, ...], str]:
    """Return the SQLSTATEs in a failure's text, and the text as the server means it."""
    return tuple(_STATE.findall(text)), _STATE.sub("", _LOCATION.sub("", text))


class VerboseConnection(psycopg.Connection[tuple[Any, ...]]):
    """A session of psycopg: each attempt at it is verbose, and nothing later.

    A psycopg that does not begin it here, or a libpq without the call, leaves the
    server's words alone.
    """

    @classmethod
    def _connect_gen(cls, conninfo: str = "", **more: float) -> "PQGenConn[Self]":
        if more.keys() - {"timeout"} or (set_verbosity := _setter()) is None:
            return (yield from super()._connect_gen(conninfo, **more))
        # psycopg 3.3.0 has its generator look at the time
        timeout_s = more.get("timeout") or math.inf
        return cls((yield from _begin(conninfo, set_verbosity, timeout_s)))


@cache
def _setter() -> Setter | None:
    """Return PQsetErrorVerbosity; None where this libpq does not show it."""
    try:
        # a name that a later psycopg may not have
        from psycopg.pq.misc import find_libpq_full_path  # noqa: PLC0415

        file = sys.modules[pq.PGconn.__module__].__file__ or ""
        # the extension's handle finds the libpq that it was linked with
        library = find_libpq_full_path() if file.endswith(".py") else file
        found = ctypes.CDLL(library).PQsetErrorVerbosity
    except (ImportError, KeyError, OSError, AttributeError):
        return None
    found.argtypes = [ctypes.c_void_p, ctypes.c_int]
    found.restype = ctypes.c_int
    setter: Setter = found
    return setter


def _begin(
    conninfo: str, set_verbosity: Setter, timeout_s: float
) -> "PQGenConn[PGconn]":
    """Connect as psycopg does (its generators.py), but for the verbosity."""
    deadline = runtime.monotonic() + timeout_s
    connection: Any = pq.PGconn.connect_start(conninfo.encode())
    set_verbosity(connection.pgconn_ptr, _VERBOSE)
    while connection.status != pq.ConnStatus.BAD:
        status = connection.connect_poll()
        if status == pq.PollingStatus.OK:
            set_verbosity(connection.pgconn_ptr, _DEFAULT)
            connection.nonblocking = 1
            begun: PGconn = connection
            return begun
        if status == pq.PollingStatus.FAILED:
            break
        reading = status == pq.PollingStatus.READING
        while not (yield connection.socket, Wait.R if reading else Wait.W):
            if runtime.monotonic() > deadline:
                raise psycopg.errors.ConnectionTimeout("connection timeout expired")
    finished = getattr(psycopg.errors, "finish_pgconn", lambda failed: failed)
    raise psycopg.OperationalError(
        f"connection failed: {connection.get_error_message('utf-8')}",
        pgconn=finished(connection),
    )
