"""The keys that were missing from what was read: since when, and which still can come.

A hole below a key that was visible at some moment was drawn before it: so it is as old
as that moment, however long it takes to be read.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Protocol

import structlog

from walstream.sources.sql.gap_ledger import Forgotten
from walstream.sources.sql.intervals import Interval, count_keys, outside
from walstream.sources.sql.progress import Horizon, TableProgress
from walstream.telemetry.fields import HINT, TABLE
from walstream.telemetry.throttle import Throttle

_SURE_S: Final = 60.0  # a key may be drawn before its transaction is seen
_ALL_ABOVE: Final = 1 << 65
_MOST_AHEAD: Final = 100  # gaps above the next key: in more, others give the keys
_SAY_AGAIN_S: Final = 3600.0
_log = structlog.get_logger()


class LowWatermark(Protocol):
    """An engine's low-water mark: below `low` every transaction has ended."""

    @property
    def next(self) -> int: ...

    @property
    def low(self) -> int: ...


class Looks(Protocol):
    """A connection that is asked which transactions are open."""

    def mark(self) -> LowWatermark | None: ...

    def newest(self) -> int | None: ...

    def next_key(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class _Watched:
    """The greatest key of some moment, and what shows that all below it ended."""

    key: int
    mark: int
    at: float


class Holes:
    """Records changes in the ledger of one table's missing keys."""

    def __init__(
        self,
        table: str,
        progress: TableProgress,
        connect: Callable[[], AbstractContextManager[Looks]],
    ) -> None:
        self._table = table
        self._progress = progress
        self._connect = connect
        self._watched: _Watched | None = None
        self._settled: int | None = None  # what is missing up to this never comes
        self._read_at = 0.0
        self._ahead: int | None = None  # a next key that lay below the position
        self._throttle = Throttle(_SAY_AGAIN_S)
        self.low: int | None = None  # the engine's low-water mark, as last seen

    def see(self, newest: int) -> None:
        """Note a greatest key, before what lies below it is read."""
        progress = self._progress
        horizon = progress.horizon
        if horizon is None or (
            progress.key is not None and progress.key >= horizon.key
        ):
            progress.horizon = Horizon(newest, progress.now())

    def forget(self) -> None:
        """Forget the known keys: they start again."""
        self._watched = self._settled = self._ahead = None

    def begin_reading(self) -> None:
        """Note that rows are read from now on."""
        self._read_at = self._progress.now()

    def look_back(self) -> None:
        """See up to which key every transaction has ended, before more is read.

        Old holes need no look again: a table may have more of them than are kept.
        """
        now, watched = self._progress.now(), self._watched
        with self._connect() as look:
            newest = look.newest()
            # afterwards: who drew a lower key is among those of then
            mark = look.mark()
        if mark is None or newest is None:
            self._watched = None
            return
        if watched is not None:
            if mark.low < watched.mark or now - watched.at < _SURE_S:
                return
            self._settled = watched.key
        self._watched = _Watched(newest, mark.next, now)

    def note(self, gaps: Sequence[Interval]) -> None:
        """Remember what is missing, with a mark that was taken after the reading."""
        gaps = self._open(gaps)
        if not gaps:
            return
        with self._connect() as look:
            mark = look.mark()
        self.low = mark.low if mark else None
        progress, number = self._progress, mark.next if mark else None
        horizon = progress.horizon
        if horizon is None:
            progress.gaps.note(gaps, progress.now(), number)
            return
        above = [(horizon.key + 1, _ALL_ABOVE)]
        old = [part for gap in gaps for part in outside(gap, above)]
        below = [(-_ALL_ABOVE, horizon.key)]
        new = [part for gap in gaps for part in outside(gap, below)]
        if number is None and self._read_at - horizon.at >= progress.timeout_s:
            # they were looked for, by the reading itself, after their time
            progress.given_up += count_keys(old) if progress.timeout_s else 0
        else:
            progress.gaps.note(old, horizon.at, number)
        progress.gaps.note(new, progress.now(), number)

    def end_round(self) -> Forgotten:
        """Forget the keys that can come no more.

        Not those that the engine has yet to give, since a greater key was inserted by
        hand: they are noted once more.
        """
        gaps, now = self._progress.gaps, self._progress.now()
        going = gaps.going()
        if not going:
            return gaps.looked(now)
        with self._connect() as look:
            following = look.next_key()
            mark = look.mark()
        self.low = mark.low if mark else None
        kept = self._to_come(going, following)
        forgotten = gaps.looked(now)
        gaps.note(kept, now, mark.next if mark else None)
        return Forgotten(forgotten.keys - count_keys(kept), forgotten.gaps - len(kept))

    def _to_come(
        self, going: Sequence[Interval], following: int | None
    ) -> list[Interval]:
        """Find the keys from the next one on, which lies among the missing keys."""
        gaps, before = self._progress.gaps, self._ahead
        is_below = following is not None and following in gaps
        self._ahead = following if is_below else None
        # those that were drawn since the last time may be on their way
        known = [key for key in (self._ahead, before) if key is not None]
        least = min(known, default=_ALL_ABOVE)
        if not known or gaps.count_from(least) > _MOST_AHEAD:
            return []
        if self._ahead is not None:
            self._warn(self._ahead)
        return [(max(low, least), high) for low, high in going if high >= least]

    def _warn(self, following: int) -> None:
        position = self._progress.key
        if self._throttle.is_due(""):
            _log.warning(
                "the next key is below rows that were read: new rows come late",
                **{
                    TABLE: self._table,
                    HINT: "move the key's sequence above the greatest key, or delete "
                    f"the rows above key {following - 1} and rewind the table to it",
                },
                next_key=following,
                position=position,
            )

    def _open(self, gaps: Sequence[Interval]) -> list[Interval]:
        """Leave out what can come no more, where there is little room."""
        if self._settled is None or not self._progress.gaps.half_full:
            return list(gaps)
        least = self._settled + 1
        return [(max(low, least), high) for low, high in gaps if high >= least]
