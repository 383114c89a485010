"""Writes a message into the WAL now and then, so that an idle stream's lag is true.

Nothing else is written: an idle slot moves without it, by keepalives. The message is
not transactional, and the stream does not ask for messages: it never becomes an op.
"""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

import psycopg
import structlog

from walstream.errors import PermissionLacking, Repair, Transient, WalstreamError
from walstream.lsn import Lsn, parse
from walstream.postgres import quoting
from walstream.postgres.connection import Connection, session
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT, REPAIR

PREFIX: Final = "walstream"
_EMIT: Final = "SELECT pg_catalog.pg_logical_emit_message(false, %s, ''::text)::text"
_HAS_FLUSH: Final = 170000  # a fourth parameter
_log = structlog.get_logger()


class Heartbeat:
    """One source's; `tick` is called by the loop alone, and never waits."""

    def __init__(
        self,
        dsn: str,
        interval_s: float,
        tell: Callable[[Lsn], None],
        clock: Callable[[], float] = runtime.monotonic,
    ) -> None:
        """`tell` hears how far the WAL goes, when one was written."""
        self._dsn = dsn
        self._interval_s = interval_s
        self._tell = tell
        self._clock = clock
        self._next = 0.0
        self._writing: Future[Lsn] | None = None
        self._refused = False

    def tick(self, start: Callable[..., Future[Any]], *, paused: bool) -> None:
        """Write one if it is due, in a thread; not while nothing is read."""
        if self._writing is not None:
            if self._writing.done():
                writing, self._writing = self._writing, None
                self._hear(writing)
        elif not paused and self._clock() >= self._next:
            self._next = self._clock() + self._interval_s
            self._writing = start(self._write)

    def _hear(self, writing: Future[Lsn]) -> None:
        try:
            lsn = writing.result()
        except Transient:
            return  # the stream itself will notice
        except WalstreamError as error:
            self._say(error)
            return
        if self._refused:
            self._refused = False
            _log.info("heartbeats are written again")
        self._tell(lsn)

    def _say(self, error: WalstreamError) -> None:
        """Log why there is none, once: the stream goes on without."""
        if not self._refused:
            self._refused = True
            said = {ERROR: str(error.args[0]), HINT: error.hint}
            if error.repair.sql:
                said[REPAIR] = error.repair.sql
            _log.warning("heartbeats cannot be written", **said)

    def _write(self) -> Lsn:
        # kept open, the session would hold up a smart shutdown
        with session(self._dsn) as connection:
            try:
                row = connection.execute(_EMIT, (PREFIX,)).fetchone()
            except psycopg.errors.InsufficientPrivilege as error:
                raise _denied(connection, error) from error
        return parse(row[0]) if row else 0


def _denied(connection: Connection, error: psycopg.Error) -> PermissionLacking:
    flush = ", boolean" if connection.info.server_version >= _HAS_FLUSH else ""
    function = f"pg_catalog.pg_logical_emit_message(boolean, text, text{flush})"
    return PermissionLacking(
        f"writing a heartbeat: {error.diag.message_primary}",
        hint='or set heartbeat = "": an idle slot advances without it',
        repair=Repair(
            sql=f"GRANT EXECUTE ON FUNCTION {function} TO"
            f" {quoting.name(connection.info.user)};"
        ),
    )
