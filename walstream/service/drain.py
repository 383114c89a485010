"""For whom a worker drains while the instance goes on, and for how long it may.

It is lent to another command, renewed for another configuration, or retired, since its
source or sink is configured no more. No clock: a time is monotonic, and the caller's.
"""


class WorkerDrain:
    """Of one worker's process; what it is lent or retired for outlives that."""

    def __init__(self, limit_s: float) -> None:
        self.limit_s = limit_s
        self.lent = False  # to another command, which uses the source's state
        self.retired = False  # its source, or sink, is configured no more
        self._lent_at = 0.0
        self._renewed_at = 0.0  # it was asked to end, for another configuration

    def lend(self, now: float) -> None:
        """Note that it is lent from now on."""
        self.lent = True
        self._lent_at = now

    def renew(self, now: float) -> bool:
        """Note that it ends for another configuration; False: it does already."""
        if self._renewed_at:
            return False
        self._renewed_at = now
        return True

    def is_late(self, now: float) -> bool:
        """Return whether it drains for longer than it may."""
        since = self._lent_at if self.lent else self._renewed_at
        return bool(since) and now > since + self.limit_s

    def end(self) -> bool:
        """Return whether a process ended in order to start again with other keys."""
        renewed_at, self._renewed_at = self._renewed_at, 0.0
        return bool(renewed_at)
