"""The policy of flushes: when a producer sends what it has before linger.ms is over.

librdkafka's idempotent producer keeps five records of a partition in flight. While more
are due, by their linger or a flush, and may not be sent yet, its thread asks in a loop
(its pull request 4989). So linger.ms is longer than an answer takes, and nothing is
flushed before Kafka has answered what was flushed last, or some time has passed: a
flush is without effect where the broker cannot be sent to just then. So is, as a rule,
the first of a Kafka transaction: its coordinator is told of each partition before.
"""

from typing import Final

_FEW: Final = 1000  # more are a backlog, whose batches are to fill
_WAIT_S: Final = 0.01  # of a few that others follow
_ANSWER_S: Final = 0.02
_FIRST_S: Final = 0.002  # in a transaction; then twice as long each time


class FlushPolicy:
    """Counts of one producer's records, and what they ask for."""

    def __init__(self, *, hurries: bool) -> None:
        """Without `hurries` nothing is ever due: linger.ms decides."""
        self._hurries = hurries
        self.sent = 0  # to the producer
        self.reported = 0  # delivered, or failed
        self._flushed = 0  # of those sent
        self._flushed_s = 0.0
        self._again_s = _ANSWER_S

    def begin(self) -> None:
        """Note that a Kafka transaction begins."""
        self._again_s = _FIRST_S

    def is_due(self, now_s: float, *, quiet: bool) -> bool:
        """Return whether to flush: no more records come, or a few have waited."""
        if not self._hurries or self.sent == self.reported:
            return False
        waited_s = now_s - self._flushed_s
        few = self.sent - self._flushed < _FEW
        due = quiet or (few and waited_s >= _WAIT_S)
        return due and (self.reported >= self._flushed or waited_s >= self._again_s)

    def flush(self, now_s: float) -> None:
        """Note that all that was sent is flushed."""
        if self.reported < self._flushed:  # the one before was without effect
            self._again_s = min(2 * self._again_s, _ANSWER_S)
        self._flushed = self.sent
        self._flushed_s = now_s
