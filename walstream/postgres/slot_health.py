"""Alarms for a slot that costs more disk than allowed, not too often."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import structlog

from walstream.lsn import Lsn
from walstream.telemetry.fields import HINT, SLOT
from walstream.telemetry.throttle import Throttle


@dataclass(frozen=True, slots=True)
class SlotHealth:
    """Disk cost of a slot, and the server's LSN."""

    retained_wal: int  # bytes that cannot be removed for it
    wal_status: str | None
    safe_wal_size: int | None  # bytes until it is invalidated; None: no limit
    flush_lsn: Lsn
    lost: str | None = None  # why it cannot be read any more
    synchronous: str = ""  # that commits wait for us; "": they do not
    # what its server wrote to disk since its statistics began
    spill_txns: int = 0
    spill_bytes: int = 0
    spilled: int | None = None  # bytes of that on disk now; None: not to be known


_MIB: Final = 1 << 20
_ALARM_AGAIN_S: Final = 600.0
_TAKE_OUT: Final = (
    "name the standbys in synchronous_standby_names, instead of '*' or this"
    " application_name, and reload; or set allow_synchronous = true in the source"
)
_OLDEST: Final = (
    "SELECT pid, usename, xact_start FROM pg_stat_activity"
    " WHERE backend_xid IS NOT NULL ORDER BY xact_start"
)
_log = structlog.get_logger()


def alarm_text(slot: str, held: int, limit: int) -> str:
    """Return the alarm of a slot that holds more bytes of WAL than wanted; "": none."""
    if held <= limit:
        return ""
    return (
        f"slot {slot!r} holds {held / _MIB:.1f} MiB of WAL, more than"
        f" alarm_retained_wal ({limit / _MIB:.1f} MiB)"
    )


def spill_text(slot: str, health: SlotHealth | None, limit: int) -> str:
    """Return the alarm of more spilled bytes than an operator wants; "": none.

    "": it is not, or nobody may see it, or no limit (0) is set.
    """
    spilled = (health.spilled if health else None) or 0
    if not limit or spilled <= limit:
        return ""
    return (
        f"the server wrote {spilled / _MIB:.1f} MiB of large transactions into files of"
        f" slot {slot!r}, more than alarm_spill ({limit / _MIB:.1f} MiB): end long"
        " transactions (pg_stat_activity), or raise logical_decoding_work_mem"
    )


class _Bell:
    """Logs a lasting state once, again every ten minutes, and at its end."""

    def __init__(self, clock: Callable[[], float], hint: str, over: str) -> None:
        self._hint = hint
        self._over = over
        self._throttle = Throttle(_ALARM_AGAIN_S, clock)

    def see(self, slot: str, text: str) -> None:
        """Take in what is to be said of a slot; "": nothing."""
        if not text:
            if self._throttle.reset():
                _log.info(self._over, **{SLOT: slot})
        elif self._throttle.is_due(""):  # whatever the figures in its text are now
            _log.error(text, **{SLOT: slot, HINT: self._hint})


class Alarm:
    """Logs when a slot costs more than allowed, and when that is over."""

    def __init__(
        self,
        slot: str,
        limit: int,
        clock: Callable[[], float],
        *,
        spill_limit: int = 0,
        may_be_synchronous: bool = False,
    ) -> None:
        """One that `may_be_synchronous` says nothing of commits that wait for it."""
        self.slot = slot
        self._may_be_synchronous = may_be_synchronous
        self._limit = limit  # bytes of WAL
        self._spill_limit = spill_limit  # bytes of large transactions; 0: none
        self.text = ""  # of held WAL; "" while all is well
        self._wal = _Bell(
            clock,
            "walstream status says what it waits for",
            "retained WAL is below the alarm again",
        )
        self._spill = _Bell(
            clock, _OLDEST, "large transactions on disk are below the alarm again"
        )
        self._waiting = _Bell(clock, _TAKE_OUT, "commits no longer wait for Kafka")

    def see(self, health: SlotHealth | None) -> None:
        """Compare; log once, and again every ten minutes while it lasts."""
        waiting = health.synchronous if health else ""
        self._waiting.see(self.slot, "" if self._may_be_synchronous else waiting)
        held = health.retained_wal if health else 0
        self.text = alarm_text(self.slot, held, self._limit)
        self._wal.see(self.slot, self.text)
        self._spill.see(self.slot, spill_text(self.slot, health, self._spill_limit))
