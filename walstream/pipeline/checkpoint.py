"""Checkpoints of a stream: delivered, then stored with fsync, then confirmed.

The loop reports how far everything is delivered. A thread stores one position at a
time, because an fsync must not delay reading or feedback; transactions delivered
meanwhile share the next one. Only a stored position is confirmed to the server, less
`retain`.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

import structlog

from walstream.errors import WalstreamError
from walstream.lsn import Lsn
from walstream.pipeline.commit_times import CommitTimes
from walstream.pipeline.ports import Position, Source, StateStore
from walstream.pipeline.sent_position import GIVEN, Reach
from walstream.pipeline.state_document import Entries
from walstream.telemetry import runtime

_STORE_EVERY_S: Final = 0.05  # transactions delivered meanwhile share one fsync
_STORE_KEEPALIVE_EVERY_S: Final = 1.0

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StartPoint:
    """Start of a stream, and how far the confirmed LSN stays behind it."""

    position: Position  # from where the stream was asked for
    retain_bytes: int = 0
    slot_start: Lsn = 0  # the slot's confirmed LSN at start: never below


@dataclass(frozen=True, slots=True)
class StoredBeside:
    """Documents that are stored in one write with each position."""

    figures: Callable[[], Entries] | None = None
    times: CommitTimes | None = None  # an index from commit times to LSNs
    reach: Reach | None = None  # how far sinks were given commits
    confirmed: Callable[[Lsn], None] | None = None  # called with each, in the loop


class Checkpointer:
    """Stores and confirms one stream's position.

    `_store` and `_write` run in the writer thread, everything else in the loop.
    """

    def __init__(
        self,
        start: StartPoint,
        positions: StateStore,
        source: Source,
        wake: Callable[[], None],
        beside: StoredBeside = StoredBeside(),
    ) -> None:
        """Call `wake` when a position was stored, or could not be."""
        self._start = start
        self._positions = positions
        self._source = source
        self._wake = wake
        self._beside = beside
        self.resume = start.position.resume  # where the stream begins
        self.confirmed: Lsn = 0  # the position that is stored
        self._submitted = self.resume
        self._submitted_at = 0.0
        self._next_store = 0.0  # when the position that is due may be stored
        self._write_failed = False
        # handed to the thread, and back
        self._busy = False
        self._stored: Lsn = 0
        self.error: WalstreamError | None = None  # of the last write
        self._writer = runtime.thread_pool(1, thread_name_prefix="positions")

    def begin(self) -> None:
        """Confirm the stored position: a crash may have come before that."""
        self._confirm(self.resume)

    def admits(self, lsn: Lsn) -> bool:
        """Return True if sinks may get a commit; else store what allows it."""
        reach = self._beside.reach
        if reach is None or reach.admits(lsn):
            return True
        if not self.busy and self.error is None:
            self._submit(self._submitted, runtime.monotonic())
        return False

    def note(self, lsn: Lsn, commit_time: int) -> None:
        """Note each transaction at its start, before a position beyond it."""
        if (times := self._beside.times) is not None:
            times.note(lsn, commit_time)

    def advance(self, resume: Lsn, last_commit: Lsn) -> None:
        """Store how far everything is delivered; confirm what is stored.

        Beyond the last commit only keepalives moved it, which can wait.
        """
        now = runtime.monotonic()
        if resume > self._submitted and not self.busy:
            by_commit = resume <= last_commit
            interval_s = _STORE_EVERY_S if by_commit else _STORE_KEEPALIVE_EVERY_S
            self._next_store = self._submitted_at + interval_s
            if now >= self._next_store:
                self._submit(resume, now)
        self._note_write_error(resume, now)
        self._confirm(self._stored)

    def due_s(self, resume: Lsn) -> float:
        """Return in how many seconds a position has to be stored."""
        if self.busy:
            return _STORE_EVERY_S
        if self._submitted >= resume:
            return float("inf")
        return max(0.0, self._next_store - runtime.monotonic())

    def hurry(self) -> None:
        """Store the next position at once: no other will share its fsync."""
        self._submitted_at = 0.0

    @property
    def busy(self) -> bool:
        """Whether a position is being written."""
        return self._busy

    def _submit(self, resume: Lsn, now: float) -> None:
        """Pass a position to the thread; call it only while not busy."""
        self._submitted = resume
        self._submitted_at = now
        self._busy = True
        self._writer.submit(self._store, replace(self._start.position, resume=resume))

    def _store(self, position: Position) -> None:
        try:
            self._write(position)
        except WalstreamError as error:
            self.error = error
        except Exception as error:  # noqa: BLE001 - the loop must hear of any
            self.error = WalstreamError(f"positions cannot be stored: {error}")
        else:
            self.error = None
            self._stored = position.resume
        self._busy = False
        self._wake()

    def _write(self, position: Position) -> None:
        """Store a position and its documents in one write with one fsync."""
        figures, times, reach = (
            self._beside.figures,
            self._beside.times,
            self._beside.reach,
        )
        documents: dict[str, object] = {}
        given = None if reach is None else reach.ahead(position.resume)
        if given is not None:
            documents |= GIVEN.entry(given)
        if figures is not None:
            documents |= figures()
        if times is not None:
            documents |= times.documents(position.resume)
        self._positions.store(position, documents)
        if times is not None:
            times.stored()
        if reach is not None and given is not None:
            reach.keep(given)  # from here on `admits` counts on it

    def _note_write_error(self, resume: Lsn, now: float) -> None:
        """Log a failed write once, and try again each second."""
        error = self.error
        if error is None:
            if self._write_failed:
                self._write_failed = False
                _log.info("positions are stored again")
        elif not error.retryable:
            raise error
        elif not self.busy:
            if not self._write_failed:
                self._write_failed = True
                _log.error("positions cannot be stored", error=str(error))
            if now >= self._submitted_at + _STORE_KEEPALIVE_EVERY_S:
                self._submit(resume, now)

    def _confirm(self, resume: Lsn) -> None:
        """Confirm a stored position, less what is retained; never goes back."""
        if resume > self.confirmed:
            self.confirmed = resume
            lsn = resume - self._start.retain_bytes
            if lsn > self._start.slot_start:
                self._source.confirm(lsn)
            if (heard := self._beside.confirmed) is not None:
                heard(resume)

    def close(self) -> None:
        """Store what is left, end the thread, store how far sinks got commits."""
        self._writer.shutdown(wait=True)
        if (reach := self._beside.reach) is not None:
            with suppress(WalstreamError):  # what is kept is ahead of it
                self._positions.write(GIVEN.entry(reach.exact()))
