"""When a slot holds more WAL than an operator wants: it is said, and not too often."""

from collections.abc import Callable
from typing import Final

import structlog

from walstream.metrics import HINT, SLOT
from walstream.postgres.health import Health

_MIB: Final = 1 << 20
_ALARM_AGAIN_S: Final = 600.0
_TAKE_OUT: Final = (
    "name the standbys in synchronous_standby_names, instead of '*' or this"
    " application_name, and reload; or set allow_synchronous = true in the source"
)
_log = structlog.get_logger()


def alarm_text(slot: str, held: int, limit: int) -> str:
    """Say that a slot holds more WAL (bytes) than an operator wants."""
    return (
        f"slot {slot!r} holds {held / _MIB:.1f} MiB of WAL, more than"
        f" alarm_retained_wal ({limit / _MIB:.1f} MiB)"
    )


class Alarm:
    """Says when a slot holds more WAL than an operator wants, and when it is over."""

    def __init__(
        self,
        slot: str,
        limit: int,
        clock: Callable[[], float],
        *,
        may_be_synchronous: bool = False,
    ) -> None:
        """One that `may_be_synchronous` says nothing of commits that wait for it."""
        self.slot = slot
        self._quiet = may_be_synchronous
        self._waiting_said_at: float | None = None
        self._limit = limit  # bytes
        self._clock = clock
        self._said_at: float | None = None
        self.text = ""  # "" while all is well

    def see(self, health: Health | None) -> None:
        """Compare; log once, and again every ten minutes while it lasts."""
        self._see_waiting(health.synchronous if health else "")
        held = health.retained_wal if health else 0
        if held <= self._limit:
            if self._said_at is not None:
                _log.info("retained WAL is below the alarm again", **{SLOT: self.slot})
            self._said_at, self.text = None, ""
            return
        self.text = alarm_text(self.slot, held, self._limit)
        now = self._clock()
        if self._said_at is None or now - self._said_at >= _ALARM_AGAIN_S:
            self._said_at = now
            _log.error(
                self.text,
                **{SLOT: self.slot, HINT: "walstream status says what it waits for"},
            )

    def _see_waiting(self, text: str) -> None:
        """Say that commits wait for us, as often; and when they do not any more."""
        if not text or self._quiet:
            if self._waiting_said_at is not None:
                _log.info("commits do not wait for Kafka any more")
            self._waiting_said_at = None
            return
        now = self._clock()
        if (
            self._waiting_said_at is None
            or now - self._waiting_said_at >= _ALARM_AGAIN_S
        ):
            self._waiting_said_at = now
            _log.error(text, **{SLOT: self.slot, HINT: _TAKE_OUT})
