"""How fast a number grows, over the last seconds. Pure: whoever asks says the time."""

from collections import deque
from typing import Final

_OVER_S: Final = 10.0


class Rate:
    """The growth of one number, which is looked at again and again."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def of(self, now: float, number: int) -> float:
        """Take in how it stands; give its growth a second over the last ten."""
        seen = self._seen
        seen.append((now, number))
        while now - seen[0][0] > _OVER_S:
            seen.popleft()
        then, first = seen[0]
        return (number - first) / (now - then) if now > then else 0.0
