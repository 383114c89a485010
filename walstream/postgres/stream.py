"""The stream of a slot: START_REPLICATION, CopyData in, status updates out.

Never blocks: `read` takes what has arrived. Status updates tell three LSNs (manual,
"Streaming Replication Protocol"). A status whose flush is behind what was received
holds up the server's fast shutdown, so each confirmation is followed at once by one
with write = received and flush = apply = 0, which leaves the slot where it is.
"""

import select
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final

import psycopg

from walstream.errors import HistoryError, Transient
from walstream.lsn import Lsn, parse, show
from walstream.op import postgres_time
from walstream.pipeline.pgoutput.frame import HEADER_SIZE, is_row
from walstream.pipeline.pgoutput.large_value import LARGE_FRAME, LargeFrame
from walstream.pipeline.ports import Position
from walstream.pipeline.sent_position import Given
from walstream.postgres import oversize_row, unreadable_row
from walstream.postgres import timeline as timelines
from walstream.postgres.connection import (
    Connection,
    connect,
    publication_lost,
    readable,
    session,
    translate,
)
from walstream.postgres.server import Server
from walstream.postgres.slot import find, quoted
from walstream.postgres.start_table import check_confirmed, check_timeline
from walstream.telemetry import runtime

_STATUS: Final = Struct("!cQQQqB")  # 'r', write, flush, apply, clock, reply wanted
_U64: Final = Struct("!Q").unpack_from
_SILENCE_S: Final = 60.0  # the server answers our status updates: none is a dead peer
_READS_PER_CALL: Final = 4
_SMALL: Final = 64 << 10  # bytes of a frame: less is not added up
_MOST_TAKEN: Final = 1 << 20  # bytes of others: what libpq has may be 500 large ones
_LITERAL_QUOTE: Final = "'"
_NOT_IN_STATE: Final = "55000"  # object_not_in_prerequisite_state


def start_command(
    slot: str, resume: Lsn, publications: Sequence[str], *, messages: bool = False
) -> str:
    """Write START_REPLICATION, which takes no parameters: quoted here alone.

    With `messages` it sends those of pg_logical_emit_message, too.
    """
    names = ",".join(quoted(name) for name in publications)
    literal = names.replace(_LITERAL_QUOTE, _LITERAL_QUOTE * 2)
    more = ", messages 'true'" if messages else ""
    return (
        f"START_REPLICATION SLOT {quoted(slot)} LOGICAL {show(resume)}"
        f" (proto_version '1', publication_names '{literal}'{more})"
    )


def tells_of_no_publication(diagnostic: psycopg.errors.Diagnostic) -> bool:
    """Know PostgreSQL 18's "skipped loading publication", in any language.

    A walsender says 55000 of synchronized_standby_slots too, from slot.c; names of the
    server's source are never translated.
    """
    return diagnostic.sqlstate == _NOT_IN_STATE and (
        diagnostic.source_file == "pgoutput.c"
        or diagnostic.source_function == "LoadPublications"
    )


class SlotSource:
    """CopyData frames of one slot, from `resume` on."""

    def __init__(self, connection: Connection, server: Server, *, start: Lsn) -> None:
        self._connection = connection
        self._pgconn = connection.pgconn
        self._pgconn.nonblocking = 1
        self._inbound = runtime.current().poller()
        self._inbound.register(self._pgconn.socket, select.POLLIN)
        # TLS may keep what it has read, and the socket does not show that
        self._hides = bool(self._pgconn.ssl_in_use)
        self._received = start
        self._confirmed: Lsn = 0
        self._status_interval_s = server.status_interval_s
        # a walsender may be busy for as long as it lets us be silent
        self._silence_s = max(_SILENCE_S, server.wal_sender_timeout_ms / 1000)
        self._next_status = 0.0
        self._last_inbound = runtime.monotonic()
        self._lost_publication: str | None = None
        self._over = False
        self.drained = False  # did the last read take all that had come?
        connection.add_notice_handler(self._notice)

    def _notice(self, diagnostic: psycopg.errors.Diagnostic) -> None:
        # PostgreSQL 18 goes on without the publication: rows are skipped from here
        if tells_of_no_publication(diagnostic):
            said = diagnostic.message_primary or diagnostic.source_function
            self._lost_publication = said or "a publication is gone"

    def fileno(self) -> int:
        return self._pgconn.socket

    @property
    def received(self) -> Lsn:
        """How far the server has sent, or said that nothing is there for us."""
        return self._received

    def read(self, limit: int) -> Sequence[bytes]:
        """Take up to `limit` frames. Raises when the stream ended or cannot be whole.

        Frames read together with the notice of a lost publication are not given out.
        """
        if self._over:
            raise self._ended()
        try:
            frames = self._take(limit)
        except psycopg.Error as error:
            raise self._failed(error) from error
        if self._lost_publication:
            raise publication_lost(self._lost_publication)
        if frames:
            self._note_received(frames[-1])
        elif runtime.monotonic() - self._last_inbound > self._silence_s:
            raise Transient(
                f"streaming: the server was silent for {self._silence_s:.0f} s"
            )
        return frames

    def _take(self, limit: int) -> list[bytes]:
        frames: list[bytes] = []
        take = self._pgconn.get_copy_data
        reads, fruitless, taken = 0, False, 0
        self.drained = False
        while len(frames) < limit:
            size, data = take(1)
            if size > 0:
                fruitless = False
                if size < _SMALL:
                    frames.append(bytes(data))
                    continue
                taken += size
                if size >= LARGE_FRAME and is_row(data[HEADER_SIZE]):
                    frames.append(LargeFrame(data))  # not copied
                else:
                    frames.append(bytes(data))
                if taken >= _MOST_TAKEN:
                    break
            elif size == 0:
                if (fruitless and not self._hides) or reads >= _READS_PER_CALL:
                    self.drained = fruitless and not self._hides
                    break
                reads += 1
                fruitless = True
                if not frames and self._inbound.poll(0):
                    # of a message that takes its time each part is a sign of life
                    self._last_inbound = runtime.monotonic()
                self._pgconn.consume_input()  # what is there; never waits
            else:
                self._over = True
                if not frames:
                    raise self._ended()
                break  # why it ended is said next time: these frames are whole
        return frames

    def _note_received(self, frame: bytes) -> None:
        """Both kinds of frame begin with LSNs; the last frame's is the highest."""
        self._last_inbound = runtime.monotonic()
        received = _U64(frame, 1)[0]
        self._received = max(self._received, received)

    def still_paused(self) -> None:
        """Nothing was read on purpose: silence means nothing."""
        self._last_inbound = runtime.monotonic()

    def _ended(self) -> Exception:
        result = self._pgconn.get_result()
        if result is not None and result.error_message:
            return self._failed(psycopg.errors.error_from_result(result))
        return Transient("streaming: the server ended the stream")

    def _failed(self, error: psycopg.Error) -> Exception:
        if oversize_row.is_unsendable(error):
            return oversize_row.stop(error, self._received)
        if unreadable_row.is_unreadable(error):
            return unreadable_row.stop(error, self._received)
        return translate(error, "streaming")

    def ask(self) -> None:
        """Make the server say soon how far it is; from any thread."""
        self._next_status = 0.0

    def confirm(self, lsn: Lsn) -> None:
        """Let the server forget everything before `lsn`. Never goes back.

        Do nothing once the stream has ended: the next `read` raises why.
        """
        if lsn > self._confirmed and not self._over:
            self._confirmed = lsn
            self._send(flush=lsn, reply=False)
            if lsn < self._received:
                self._send(flush=0, reply=False)

    def keep_alive(self, *, now: bool = False) -> None:
        """Send a status update when one is due, or at once.

        Do nothing once the stream has ended: the next `read` raises why.
        """
        if self._over:
            return  # libpq would refuse it, and the server's words were never read
        if now or runtime.monotonic() >= self._next_status:
            self._send(flush=0, reply=not now)
        else:
            self._flush()

    def _send(self, *, flush: Lsn, reply: bool) -> None:
        clock = postgres_time(runtime.time())
        status = _STATUS.pack(b"r", self._received, flush, flush, clock, reply)
        try:
            self._pgconn.put_copy_data(status)
        except psycopg.Error as error:
            raise translate(error, "streaming") from error
        self._flush()
        self._next_status = runtime.monotonic() + self._status_interval_s

    def _flush(self) -> None:
        try:
            self._pgconn.flush()
        except psycopg.Error as error:
            raise translate(error, "streaming") from error

    def close(self, *, wait_s: float = 0.0) -> None:
        """End the stream; wait that long for the server to let go of the slot."""
        try:
            if wait_s:
                self._end_copy(runtime.monotonic() + wait_s)
        except psycopg.Error:
            pass  # gone already
        finally:
            self._connection.close()

    def _end_copy(self, deadline: float) -> None:
        self._pgconn.put_copy_end()
        self._pgconn.flush()
        while (left := deadline - runtime.monotonic()) > 0:
            size, _ = self._pgconn.get_copy_data(1)
            if size < 0:
                return
            if size == 0:
                if not readable(self._pgconn.socket, left):
                    return
                self._pgconn.consume_input()


def _check_unread(dsn: str, source: str, position: Position) -> None:
    """See that nobody moved the slot since it was looked at, which may be long ago.

    PostgreSQL begins where the slot is confirmed, and says nothing. From here on nobody
    else can move it.
    """
    with session(dsn) as asking:
        slot = find(asking, position.slot)
    if slot is not None:
        check_confirmed(source, position, slot)


def open_stream(  # noqa: PLR0913 - what START_REPLICATION needs, and who is told
    dsn: str,
    server: Server,
    position: Position,
    *,
    source: str,
    publications: Sequence[str],
    messages: bool = False,
    given: Given | None = None,
    report: Callable[[int], None] = lambda _timeline: None,
) -> SlotSource:
    """Connect and start replication at the position; raise where history changed.

    Raise SlotLost where the slot is beyond the position: changes are missing.

    `given` is how far sinks were given commits. `report` is told the server's timeline,
    once it is known to contain both.
    """
    connection = connect(dsn, replication=True)
    try:
        row = connection.execute("IDENTIFY_SYSTEM").fetchone()
        if row is None:
            raise Transient("IDENTIFY_SYSTEM gave no answer")
        if int(row[0]) != position.system_identifier:
            raise HistoryError(
                f"the server is {row[0]}, not {position.system_identifier}",
                hint="correct the dsn: it leads to different servers",
            )
        timeline = int(row[1])
        if timelines.differ(timeline, position, given):
            history = timelines.read(connection, timeline)
            check_timeline(source, position, server, history, given)
        report(timeline)
        start = min(position.resume, parse(row[2]))
        connection.execute(
            start_command(
                position.slot, position.resume, publications, messages=messages
            ).encode()
        )
        _check_unread(dsn, source, position)
    except psycopg.Error as error:
        connection.close()
        raise translate(error, f"reading slot {position.slot!r}") from error
    except BaseException:
        connection.close()
        raise
    return SlotSource(connection, server, start=start)
