"""Policy for sinks that lag too long: pure, no clock.

Sinks of a source share its slot, so that the slowest decides what PostgreSQL keeps. A
sink is late when others were ahead of it, or had to wait for its room, for longer than
the limit. While no other sink makes progress either, as when all write to one Kafka
that is down, none is late.
"""

from collections import deque
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from walstream.lsn import Lsn

Key = TypeVar("Key", bound=Hashable)
_STILL_S: Final = 5.0  # without progress this long, a sink with work is stuck


class SinkLag(NamedTuple):
    """Lag of one sink since the last look."""

    resume: Lsn
    idle: bool  # nothing is under way
    full: bool  # it had no room at some time
    roomy: bool  # it had room at some time


@dataclass(slots=True)
class _Known:
    since: float  # the others get on: what was before is not its fault
    resume: Lsn
    moved_at: float
    full_since: float | None = None  # had no room at all since


class LagPolicy(Generic[Key]):
    """Decides which sinks of one stream are late."""

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._best: deque[tuple[float, Lsn]] = deque()  # when, the farthest of all
        self._known: dict[Key, _Known] = {}

    def look(self, now: float, sights: Mapping[Key, SinkLag]) -> dict[Key, float]:
        """Return the late sinks, each with its seconds; `now` never goes back."""
        self._note(now, sights)
        return {
            lane: late_s
            for lane, sight in sights.items()
            if (late_s := self._late_s(lane, sight, now)) >= self._limit_s
        }

    def _note(self, now: float, sights: Mapping[Key, SinkLag]) -> None:
        best = max((sight.resume for sight in sights.values()), default=0)
        if not self._best or best > self._best[-1][1]:
            self._best.append((now, best))
        while len(self._best) > 1 and self._best[1][0] <= now - 2 * self._limit_s:
            self._best.popleft()
        for lane in self._known.keys() - sights.keys():
            del self._known[lane]
        for lane, sight in sights.items():
            known = self._known.setdefault(lane, _Known(now, sight.resume, now))
            if sight.resume != known.resume:
                known.resume, known.moved_at = sight.resume, now
            if sight.roomy or not sight.full:
                known.full_since = None
            elif known.full_since is None:
                known.full_since = now
        for lane in sights:
            if not self._others_get_on(lane, now, sights):
                self._known[lane].since = now

    def _others_get_on(
        self, lane: Key, now: float, sights: Mapping[Key, SinkLag]
    ) -> bool:
        return any(
            other.roomy and (other.idle or now - self._known[one].moved_at <= _STILL_S)
            for one, other in sights.items()
            if one != lane
        )

    def _late_s(self, lane: Key, sight: SinkLag, now: float) -> float:
        ahead_since = next((at for at, best in self._best if best > sight.resume), None)
        known = self._known[lane]
        since = [at for at in (ahead_since, known.full_since) if at is not None]
        return now - max(min(since), known.since) if since else 0.0
