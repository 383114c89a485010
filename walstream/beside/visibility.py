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

    __slots__ = ("_xmax", "running")

    def __init__(self, xmax: int, running: Iterable[int] = ()) -> None:
        self._xmax = xmax
        self.running = frozenset(running)

    @classmethod
    def of(cls, text: str) -> Self:
        """Read `xmin:xmax:xip,xip`."""
        _, xmax, running = text.split(":")
        return cls(int(xmax), map(int, running.split(",") if running else ()))

    def sees(self, xid: int) -> bool:
        """Tell whether what a streamed transaction did is seen."""
        xmax = self._xmax
        full = xmax + (xid - xmax + _HALF) % _XIDS - _HALF
        return full < xmax and full not in self.running

    def still_running(self, later: "Visibility") -> frozenset[int]:
        """Give those of its running transactions that run in a later snapshot, too."""
        return self.running & later.running
