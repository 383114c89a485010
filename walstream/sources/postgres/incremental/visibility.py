"""Which transactions a snapshot sees, as pg_current_snapshot prints it: pure.

The stream names a transaction by 32 bits, a snapshot by 64: the nearest to the
snapshot's end is meant.
"""

from collections.abc import Iterable
from typing import Final, Self

_XIDS: Final = 1 << 32
_HALF: Final = 1 << 31


class Visibility:
    """Transactions below `xmin` are seen, from `xmax` on not, between by a list."""

    __slots__ = ("_running", "_xmax")

    def __init__(self, xmax: int, running: Iterable[int] = ()) -> None:
        self._xmax = xmax
        self._running = frozenset(running)

    @classmethod
    def of(cls, text: str) -> Self:
        """Read `xmin:xmax:xip,xip`."""
        _, xmax, running = text.split(":")
        return cls(int(xmax), map(int, running.split(",") if running else ()))

    def sees(self, xid: int) -> bool:
        """Tell whether what a streamed transaction did is seen."""
        xmax = self._xmax
        full = xmax + (xid - xmax + _HALF) % _XIDS - _HALF
        return full < xmax and full not in self._running

    def sees_all_below(self, number: int) -> bool:
        """Tell whether every transaction below this full number has ended.

        For a snapshot taken after some transaction above it ended: of what runs above
        all that ended, a snapshot lists nothing.
        """
        return number <= min(self._running, default=self._xmax)
