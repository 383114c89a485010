"""Limit of a source's stream by its configuration, and the word that it falls back."""

from collections.abc import Callable
from typing import Final

import structlog

from walstream.config import Config, KafkaSinkConfig, PostgresSource
from walstream.kafka.producer_config import transaction_timeout_ms
from walstream.pipeline.rate_limit import RateLimit
from walstream.telemetry import human, runtime
from walstream.telemetry.fields import HINT, SLOT

_OPEN_SHARE: Final = 4  # of what Kafka lets a transaction be open, it may be held
_GROWS_S: Final = 15.0
_HINT: Final = (
    "raise or remove the limit if this lasts: WAL fills the server's disk, or"
    " max_slot_wal_keep_size ends the slot"
)
_log = structlog.get_logger()


def limit_of(config: Config, source: PostgresSource) -> RateLimit | None:
    """Make the limit of a source's streams; None: it has none.

    A transaction that is written in a Kafka transaction is held for a part of the time
    for which that may be open: later it passes, so that it need not come in parts.
    """
    rows, size = source.max_rows_per_second, source.max_bytes_per_second
    if not (rows or size):
        return None
    sinks = [config.sinks[name] for name in source.sinks]
    timeouts_ms = [
        transaction_timeout_ms(sink.producer)
        for sink in sinks
        if isinstance(sink, KafkaSinkConfig) and sink.delivery == "transactional"
    ]
    shortest_s = min(timeouts_ms, default=float("inf")) / 1000
    return RateLimit(rows=rows, size=size, patience_s=shortest_s / _OPEN_SHARE)


class LimitWatch:
    """Logs once that a stream is held while its lag grows, and when that is over."""

    def __init__(
        self, limit: RateLimit, clock: Callable[[], float] = runtime.monotonic
    ) -> None:
        self._limit = limit
        self._clock = clock
        self._held_s = 0.0
        self._since: tuple[float, int] | None = None  # when it was held first, its lag
        self._is_said = False

    def see(self, slot: str, lag_bytes: int | None) -> None:
        """Take in the lag; called every some seconds."""
        held_s, now = self._limit.held_s, self._clock()
        is_held, self._held_s = held_s > self._held_s, held_s
        if not is_held:
            self._since = None
            if self._is_said and lag_bytes is not None:
                self._is_said = False
                _log.info("the stream is no longer held by a limit", **{SLOT: slot})
        elif lag_bytes is None or self._is_said:
            pass
        elif self._since is None:
            self._since = now, lag_bytes
        elif now - self._since[0] >= _GROWS_S and lag_bytes > self._since[1]:
            self._is_said = True
            grown = human.size(lag_bytes - self._since[1])
            _log.warning(
                f"{self._limit.held_by or 'a limit'} holds the stream while its lag"
                f" grows: by {grown} of WAL in {now - self._since[0]:.0f} s",
                **{SLOT: slot, HINT: _HINT},
            )
