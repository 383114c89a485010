"""Wait of a partition for a full batch, as a producer's linger.ms."""

from collections.abc import Callable

from consumer.group.buffer import HAND, Inbox
from walstream.telemetry import runtime


class Linger:
    """Used in the turns of one partition."""

    def __init__(
        self,
        seconds: float,
        wanted: int,
        clock: Callable[[], float] = runtime.monotonic,
    ) -> None:
        self._seconds = seconds
        self._wanted = wanted  # messages
        self._clock = clock
        self._since: float | None = None  # when the oldest message was seen

    def left(self, inbox: Inbox) -> float:
        """Return how many seconds to wait for more messages; 0: take those received."""
        if inbox.empty or inbox.count >= self._wanted or inbox.bytes >= HAND:
            self._since = None
            return 0.0
        now = self._clock()
        if self._since is None:
            self._since = now
        left = self._since + self._seconds - now
        if left <= 0:
            self._since = None
        return max(0.0, left)
