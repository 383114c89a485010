"""Grace time for a source whose password or certificate is refused.

Whoever rotates them changes the server and the file one after the other: in between,
and while a token's next one is on its way, a refusal says nothing of what will be.
"""

from collections.abc import Callable

from walstream.telemetry import runtime


class ReloadGrace:
    """Grace for a source that has streamed in this run; none for one that never did."""

    def __init__(
        self, grace_s: float, clock: Callable[[], float] = runtime.monotonic
    ) -> None:
        self.grace_s = grace_s
        self._clock = clock
        self._has_flowed = False
        self._refused_at: float | None = None  # first, since it last flowed

    def flows(self) -> None:
        """Note that changes come: a refusal after this has the whole grace again."""
        self._has_flowed = True
        self._refused_at = None

    def is_first(self) -> bool:
        """Return whether no refusal came since it last flowed."""
        return self._refused_at is None

    def goes_on(self) -> bool:
        """Return, at a refusal, whether there is another try."""
        if not self._has_flowed:
            return False
        now = self._clock()
        if self._refused_at is None:
            self._refused_at = now
        return now - self._refused_at < self.grace_s
