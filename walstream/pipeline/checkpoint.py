"""How far a stream is, kept: delivered, then stored with fsync, then confirmed.

Many transactions share one fsync. What is confirmed stays behind by what is retained.
"""

import time
from dataclasses import dataclass, replace
from typing import Final, Protocol

import structlog

from walstream.lsn import Lsn
from walstream.pipeline.checkpoint_writer import PositionWriter
from walstream.pipeline.ports import Position

_STORE_EVERY_S: Final = 0.02  # transactions delivered meanwhile share one fsync
_STORE_KEEPALIVE_EVERY_S: Final = 1.0

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Confirming:
    """How far the confirmed LSN stays behind the position."""

    position: Position  # from where the stream was asked for
    retain_bytes: int = 0
    slot_start: Lsn = 0  # the slot's confirmed LSN at start: never below


class Confirmed(Protocol):
    """Who is told what may be forgotten."""

    def confirm(self, lsn: Lsn) -> None:
        """Let the server forget everything before `lsn`. Never goes back."""


class Keeping:
    """One stream's position, on its way to the disk and to the server."""

    def __init__(
        self, writer: PositionWriter, confirming: Confirming, source: Confirmed
    ) -> None:
        self._writer = writer
        self._confirming = confirming
        self._source = source
        self._submitted = confirming.position.resume
        self._stored_at = 0.0
        self._next_store = 0.0  # when the position that is due may be stored
        self._write_failed = False
        self.note = writer.note  # hears of each transaction that begins
        self.confirmed: Lsn = 0  # the position that is stored

    def begin(self) -> None:
        """Confirm what was stored: the slot may not have heard of it before a crash."""
        self._confirm(self._confirming.position.resume)

    def admits(self, lsn: Lsn) -> bool:
        """Tell whether sinks may be given a commit; else what allows it is stored."""
        writer = self._writer
        if writer.admits(lsn):
            return True
        if not writer.busy and writer.error is None:
            self._submit(self._submitted, time.monotonic())
        return False

    def hurry(self) -> None:
        """Store the next at once: nothing more will share its fsync."""
        self._stored_at = 0.0

    def due_s(self, resume: Lsn) -> float:
        """Tell after how many seconds a position has to be stored, or was."""
        if self._writer.busy:
            return _STORE_EVERY_S
        if self._submitted >= resume:
            return float("inf")
        return max(0.0, self._next_store - time.monotonic())

    def advance(self, resume: Lsn, last_commit: Lsn) -> None:
        """Store how far all is delivered, confirm what is stored.

        Beyond the end of the last commit only keepalives moved it: that can wait.
        """
        now = time.monotonic()
        if resume > self._submitted and not self._writer.busy:
            by_commit = resume <= last_commit
            interval_s = _STORE_EVERY_S if by_commit else _STORE_KEEPALIVE_EVERY_S
            self._next_store = self._stored_at + interval_s
            if now >= self._next_store:
                self._submit(resume, now)
        self._note_write_error(resume, now)
        stored = self._writer.stored
        if stored is not None:
            self._confirm(stored.resume)

    def _confirm(self, resume: Lsn) -> None:
        """Confirm a stored position, less what is retained; never goes back."""
        if resume > self.confirmed:
            self.confirmed = resume
            lsn = resume - self._confirming.retain_bytes
            if lsn > self._confirming.slot_start:
                self._source.confirm(lsn)

    def _note_write_error(self, resume: Lsn, now: float) -> None:
        """After a failed write say so once, and try again each second."""
        error = self._writer.error
        if error is None:
            if self._write_failed:
                self._write_failed = False
                _log.info("positions are stored again")
        elif not error.retryable:
            raise error
        elif not self._writer.busy:
            if not self._write_failed:
                self._write_failed = True
                _log.error("positions cannot be stored", error=str(error))
            if now >= self._stored_at + _STORE_KEEPALIVE_EVERY_S:
                self._submit(resume, now)

    def _submit(self, resume: Lsn, now: float) -> None:
        self._submitted = resume
        self._stored_at = now
        self._writer.submit(replace(self._confirming.position, resume=resume))
