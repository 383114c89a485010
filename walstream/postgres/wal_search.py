"""Finds a transaction by its commit time in the WAL that a slot still has.

A temporary copy of the slot is read, so that this works beside whoever reads the slot,
and moves nothing. The copy ends with its connection.
"""

import select
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from struct import Struct
from typing import Final

import psycopg
from psycopg import sql

from walstream.errors import Transient
from walstream.lsn import Lsn, parse
from walstream.pipeline.pgoutput import Begin, decode
from walstream.pipeline.pgoutput.frame import HEADER_SIZE, WAL_DATA
from walstream.postgres.connection import Connection, connect, translate
from walstream.postgres.server import Server
from walstream.postgres.stream import SlotSource, start_command
from walstream.telemetry import runtime

_FRAMES: Final = 500
_BEGIN: Final = ord("B")
_U64: Final = Struct("!Q").unpack_from
_WAIT_MS: Final = 500
_TOO_MANY: Final = "53400"
_COPY: Final = (
    "SELECT lsn::text FROM pg_catalog.pg_copy_logical_replication_slot({}, {}, true)"
)


@dataclass(frozen=True, slots=True)
class SlotCopy:
    """A copy of a slot, for one search."""

    connection: Connection
    name: str
    oldest: Lsn  # what committed below is not sent

    def first(
        self, time: int, start: Lsn, until: Lsn, *, server: Server, names: Sequence[str]
    ) -> Lsn | None:
        """Find the first commit LSN from `start` on with a commit not before a time.

        `names` are the publications: transactions that wrote nothing of theirs are not
        there. None: there is none below `until`.
        """
        try:
            self.connection.execute(start_command(self.name, start, names).encode())
        except psycopg.Error as error:
            raise translate(error, f"reading a copy of slot {self.name!r}") from error
        source = SlotSource(self.connection, server, start=start)
        waiting = select.poll()  # not select: it ends at descriptor 1023
        waiting.register(source, select.POLLIN)
        while True:
            source.keep_alive()
            frames = source.read(_FRAMES)
            for frame in frames:
                begin = _begin(frame)
                lsn = begin.final_lsn if begin else _wal_end(frame)
                if lsn >= until:
                    return None
                if begin and begin.commit_time >= time:
                    return lsn
            if not frames:
                source.ask()  # an idle server says how far it is
                waiting.poll(_WAIT_MS)


def _begin(frame: bytes) -> Begin | None:
    if frame[0] != WAL_DATA or frame[HEADER_SIZE] != _BEGIN:
        return None
    message = decode(frame, HEADER_SIZE)
    return message if isinstance(message, Begin) else None


def _wal_end(frame: bytes) -> Lsn:
    """Return up to where a keepalive says that all was sent; 0 of other frames."""
    return 0 if frame[0] == WAL_DATA else _U64(frame, 1)[0]


@contextmanager
def copied(dsn: str, slot: str) -> Iterator[SlotCopy]:
    """Copy a slot; it is dropped at the end. Needs a free slot and WAL sender."""
    connection = connect(dsn, replication=True)
    name = f"{slot[:40]}_{runtime.token_hex(4)}"
    # a walsender takes no parameters
    query = sql.SQL(_COPY).format(sql.Literal(slot), sql.Literal(name))
    try:
        try:
            row = connection.execute(query.as_string(connection).encode()).fetchone()
        except psycopg.Error as error:
            if error.sqlstate == _TOO_MANY:
                raise Transient(
                    f"copying slot {slot!r} for a search: {error.diag.message_primary}",
                    hint="rewind to an LSN, which needs no copy; or drop a slot that "
                    "is no longer needed, or raise max_replication_slots",
                ) from error
            raise translate(error, f"copying slot {slot!r} for a search") from error
        if row is None:
            raise Transient(f"copying slot {slot!r} gave no answer")
        yield SlotCopy(connection, name, parse(row[0]))
    finally:
        connection.close()
