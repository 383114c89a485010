"""Limit of a repeated message: logged at once, and again only after a while."""

from collections.abc import Callable

from walstream.telemetry import runtime


class Throttle:
    """Limit for the repetitions of a text."""

    def __init__(
        self, again_s: float, clock: Callable[[], float] = runtime.monotonic
    ) -> None:
        self._again_s = again_s
        self._clock = clock
        self._said: tuple[str, float] | None = None  # what, and when

    def is_due(self, text: str) -> bool:
        """Return True for another text than the last, or when it was long ago.

        It is taken as said then.
        """
        now = self._clock()
        if self._said is not None:
            said, at = self._said
            if said == text and now - at < self._again_s:
                return False
        self._said = text, now
        return True

    def reset(self) -> bool:
        """Forget what was said, since it is over; return True if anything was."""
        said, self._said = self._said, None
        return said is not None
