"""A plain session that one question after the other uses.

Each new one costs the server a process with cold caches: some 10 ms, for each table of
a backlog, and for each TRUNCATE under REPLICA IDENTITY FULL. Kept open it would hold up
a smart shutdown: it is closed when nobody asks for a second, and after some seconds in
any case.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

from walstream.postgres.connection import Connection, connect, readable, translated
from walstream.telemetry import runtime

_IDLE_S: Final = 1.0
_AGE_S: Final = 5.0


class SessionReuse:
    """Sessions of one DSN; any thread may use one, and they do not share it."""

    def __init__(
        self, dsn: str, clock: Callable[[], float] = runtime.monotonic
    ) -> None:
        self._dsn = dsn
        self._clock = clock
        self._lock = Lock()
        self._idle: Connection | None = None
        self._opened = self._used = 0.0
        self._closed = False

    @contextmanager
    def session(self) -> Iterator[Connection]:
        """Use one alone; after an error it is not used again.

        Raises what an operator understands.
        """
        connection, opened = self._take()
        try:
            with translated("asking PostgreSQL"):
                yield connection
        except BaseException:
            connection.close()
            raise
        self._give_back(connection, opened)

    def _take(self) -> tuple[Connection, float]:
        with self._lock:
            connection, self._idle = self._idle, None
            opened = self._opened
        if connection is not None:
            # a server says something unasked only when it ends the session
            if not readable(connection.fileno(), 0):
                return connection, opened
            connection.close()
        return connect(self._dsn), self._clock()

    def _give_back(self, connection: Connection, opened: float) -> None:
        with self._lock:
            now = self._clock()
            if not self._closed and self._idle is None and now < opened + _AGE_S:
                self._idle, self._opened, self._used = connection, opened, now
                return
        connection.close()

    def tick(self) -> None:
        """Close it if nobody asked for a while."""
        if self._idle is None:
            return
        now = self._clock()
        with self._lock:
            if now < min(self._used + _IDLE_S, self._opened + _AGE_S):
                return
            connection, self._idle = self._idle, None
        if connection is not None:
            connection.close()

    def close(self) -> None:
        """Close it, and what is in use as soon as it is not."""
        with self._lock:
            self._closed = True
            connection, self._idle = self._idle, None
        if connection is not None:
            connection.close()
