"""Budget of rows and bytes a second that a stream may read: pure, by a clock.

Each limit has a bucket, which fills at its rate, up to what a second gives. A frame
passes when all buckets have what it takes; one that takes more than a second gives
passes when they are full, and is paid for afterwards.
"""

from collections.abc import Callable, Sequence
from typing import Final

from walstream.pipeline.pgoutput.frame import HEADER_SIZE, WAL_DATA, is_row
from walstream.pipeline.pgoutput.large_value import LargeFrame
from walstream.telemetry import runtime

ROWS: Final = "max_rows_per_second"
BYTES: Final = "max_bytes_per_second"
_BEGIN: Final = ord("B")
_COMMIT: Final = ord("C")
_OTHER_ROWS: Final = (ord("T"), ord("M"))  # truncates and messages are records, too
_HOLD_S: Final = 0.02  # at least, where more than a frame fits into it: turns cost
_LATELY_S: Final = 1.0


class _Bucket:
    __slots__ = ("at", "key", "left", "of_rows", "rate")

    def __init__(self, key: str, rate: int, now: float) -> None:
        self.key = key
        self.of_rows = key == ROWS
        self.rate = rate
        self.left = float(rate)
        self.at = now

    def fill(self, now: float) -> None:
        self.left = min(self.rate, self.left + (now - self.at) * self.rate)
        self.at = now

    def lacks(self, wanted: int) -> bool:
        return wanted > 0 and self.left < min(wanted, self.rate)

    def wait_s(self, wanted: int) -> float:
        """Return the time until it has that, or enough to be worth a turn."""
        enough = min(max(wanted, self.rate * _HOLD_S), self.rate)
        return max(0.0, enough - self.left) / self.rate


class RateLimit:
    """Budget of one source's streams, one after the other; called by their loop.

    `held_by` and `held_s` are for any thread.
    """

    def __init__(
        self,
        *,
        rows: int = 0,
        size: int = 0,
        patience_s: float = float("inf"),
        clock: Callable[[], float] = runtime.monotonic,
    ) -> None:
        """Limit rows and bytes a second; 0: no limit.

        What is read of a transaction that is open for longer than `patience_s` passes.
        """
        now = clock()
        self._clock = clock
        rates = {ROWS: rows, BYTES: size}
        self._buckets = [_Bucket(key, rate, now) for key, rate in rates.items() if rate]
        self._patience_s = patience_s
        self._open_since: float | None = None  # the transaction that is read
        self._is_lifted = False
        # seconds so far, with the rest of the last hold; when that ends; which limit
        self._hold: tuple[float, float, str] = 0.0, float("-inf"), ""

    def begin(self) -> None:
        """Begin a stream: what those before read is still to be paid."""
        self._open_since = None
        self._is_lifted = False

    def lift(self) -> None:
        """Let everything pass from now on: the stream ends."""
        self._is_lifted = True
        self._hold = self.held_s, self._clock(), self._hold[2]

    @property
    def wait_s(self) -> float:
        """Return how long nothing may pass from now on; 0: something may."""
        return max(0.0, self._hold[1] - self._clock())

    @property
    def held_s(self) -> float:
        """Return for how many seconds nothing could pass so far."""
        total, until, _ = self._hold
        return total - max(0.0, until - self._clock())

    @property
    def held_by(self) -> str:
        """Return the key that holds the stream, or held it in the last second; ""."""
        _, until, key = self._hold
        return key if self._clock() < until + _LATELY_S else ""

    def take(self, frames: Sequence[bytes], first: int) -> int:
        """Pay for frames from `first` on; return the first of them that has to wait."""
        if self._is_lifted:
            return len(frames)
        now = self._clock()
        if now < self._hold[1]:
            return first
        for bucket in self._buckets:
            bucket.fill(now)
        for index in range(first, len(frames)):
            frame = frames[index]
            tag = frame[HEADER_SIZE] if frame[0] == WAL_DATA else 0
            if tag and not self._pays(frame, tag, now):
                return index
            if tag == _BEGIN:
                self._open_since = now
            elif tag == _COMMIT:
                self._open_since = None
        return len(frames)

    def _pays(self, frame: bytes, tag: int, now: float) -> bool:
        """Take what a frame costs out of all buckets, or of none."""
        rows = int(is_row(tag) or tag in _OTHER_ROWS)
        size = frame.size if isinstance(frame, LargeFrame) else len(frame)
        passes = (
            self._open_since is not None and now - self._open_since > self._patience_s
        )
        for bucket in self._buckets:
            wanted = rows if bucket.of_rows else size
            if not passes and bucket.lacks(wanted):
                wait_s = bucket.wait_s(wanted)
                self._hold = self._hold[0] + wait_s, now + wait_s, bucket.key
                return False
        for bucket in self._buckets:
            left = bucket.left - (rows if bucket.of_rows else size)
            # nobody gains from a silence that is as long as what passed was large
            bucket.left = max(left, min(bucket.left, -bucket.rate)) if passes else left
        return True
