"""The figures of all sources and sinks, put into the log every `stats_interval`.

A time is monotonic, and the caller's.
"""

import structlog

from walstream.config import Config
from walstream.service.http.text import stats_lines
from walstream.status.model import Status

_log = structlog.get_logger()


class StatsLog:
    """Knows when they are due; 0 s: never."""

    def __init__(self, config: Config, now: float) -> None:
        self._interval_s = config.stats_interval
        self._due_at = now + self._interval_s

    def is_due(self, now: float) -> bool:
        """Return whether it is time to `write`."""
        return bool(self._interval_s) and now >= self._due_at

    def write(self, status: Status, now: float) -> None:
        """Log a line an object; the next are due an interval later."""
        self._due_at = now + self._interval_s
        for line in stats_lines(status):
            _log.info("stats", line=line)

    def take(self, config: Config, now: float) -> None:
        """Go by another interval: a shorter one counts from now on."""
        self._interval_s = config.stats_interval
        self._due_at = min(self._due_at, now + self._interval_s)
