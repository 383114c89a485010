"""The clock of a producer's turns: it shows a process that was stopped meanwhile."""

import threading
from functools import lru_cache
from typing import Final

import structlog

from walstream.errors import Restart
from walstream.telemetry import runtime

_BEAT_S: Final = 0.25
_STILL_MS: Final = 1000  # less is a busy machine's
_log = structlog.get_logger()


class Pulse:
    """Total time for which this process was frozen: late beats show it.

    By the wall clock, which a suspended machine's monotonic one may not follow. When it
    is set forward the stream begins again for nothing. Its host is the one under which
    it was made, since it outlives every use of another.
    """

    def __init__(self) -> None:
        self._host = runtime.current()
        self._lock = threading.Lock()
        self.last_ms = 0  # 0: it did not beat yet
        self._still_ms = 0

    def beat(self) -> tuple[int, int]:
        """Return the time, and how long the process was frozen until now, in ms."""
        with self._lock:
            now_ms = int(self._host.time() * 1000)
            late_ms = now_ms - (self.last_ms or now_ms)
            if late_ms > _STILL_MS:
                self._still_ms += late_ms
            self.last_ms = now_ms
            return now_ms, self._still_ms

    def go_on(self) -> None:
        """Beat for as long as the process lives."""
        while True:
            self.beat()
            self._host.sleep(_BEAT_S)


def process_pulse() -> Pulse:
    """Return that of this process.

    It beats in a thread of its own: a handler that waits for long does not stand still,
    nor do librdkafka's threads meanwhile.
    """
    return _beating(runtime.current())


@lru_cache(maxsize=1)
def _beating(on: runtime.Runtime) -> Pulse:
    pulse = Pulse()
    on.start_thread(pulse.go_on, "pulse")
    return pulse


class TurnClock:
    """Reads the wall clock once a turn."""

    def __init__(self, pulse: Pulse | None = None) -> None:
        self._pulse = pulse or process_pulse()
        self.now_ms = 0  # of this turn; 0: before the first
        self._still_ms = self._pulse.beat()[1]

    def turn(self) -> int:
        """Return how many ms the process was frozen since the last turn."""
        before_ms = self._still_ms
        self.now_ms, self._still_ms = self._pulse.beat()
        return self._still_ms - before_ms

    def was_frozen(self, limit_ms: int) -> bool:
        """Return, for what is closed, whether it was for longer since the last turn.

        It says so: what ended the turn may be another error, a connection that is gone.
        """
        still_ms = self.turn()
        if still_ms > limit_ms:
            _log.warning(str(stood_still(still_ms).args[0]))
        return still_ms > limit_ms


def stood_still(still_ms: int) -> Restart:
    """Return the error of a process that was frozen for this long.

    Another instance may continue from the position by then: records in flight were
    purged, what was read before is not sent, and all is sent again if it was not yet.
    """
    return Restart(
        f"this process was frozen for {still_ms / 1000:.0f} s: what it read before is "
        "dropped, and comes again from the position"
    )
