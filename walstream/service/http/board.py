"""The supervisor's last snapshot and its history, for the threads that answer.

One writer, any number of readers, no lock: every object is replaced, never changed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from walstream.config import Config
from walstream.service.http.event_log import EventLog
from walstream.service.http.series import Series
from walstream.service.http.token_failures import WrongTokens
from walstream.status.model import SourceStatus, Status
from walstream.status.snapshot import InstanceSnapshot
from walstream.status.status import of_run
from walstream.telemetry import runtime

_STALE_S: Final = 10.0  # the supervisor turns at least twice a second


@dataclass(frozen=True, slots=True)
class Truth:
    """The status of everything at one moment."""

    snapshot: InstanceSnapshot
    status: Status
    hangs: str = ""  # why the supervisor itself cannot be believed
    wrong_tokens: int = 0

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Return the problems, each with the source's name; "" is the supervisor."""
        found = [("", self.hangs)] if self.hangs else []
        for source in self.status.sources:
            texts = source.problems
            if source.exit_code and not texts:
                texts = [f"it is {source.state}"]
            found += [(source.name, text) for text in texts]
        return found

    @property
    def well(self) -> bool:
        codes = any(source.exit_code for source in self.status.sources)
        return not (codes or self.hangs)

    @property
    def unready(self) -> list[str]:
        """Return what does not work yet, or no longer."""
        if self.snapshot.stopping:
            return ["walstream is stopping"]
        return [
            f"source {source.name!r} is {source.state}"
            for source in self.status.sources
            if not is_ready(source)
        ]


def is_ready(source: SourceStatus) -> bool:
    """Return True if a source does its work, or has none left."""
    if source.exit_code:
        return False
    return source.state in {"streaming", "polling", "backfilling", "stopped"}


class Board:
    """The last snapshot, and what went before it: series and events."""

    def __init__(
        self, config: Config, clock: Callable[[], float] = runtime.monotonic
    ) -> None:
        self.config = config
        self.wrong = WrongTokens()
        self._clock = clock
        self._snapshot: InstanceSnapshot | None = None
        self.series = Series()
        self.log = EventLog()

    def publish(self, snapshot: InstanceSnapshot) -> None:
        """Replace the snapshot; only the supervisor's loop calls it."""
        self._snapshot = snapshot
        self.series.see(snapshot, self._clock())
        self.log.see(snapshot)

    def truth(self) -> Truth | None:
        """Return the status now; None before the first snapshot."""
        snapshot = self._snapshot
        if snapshot is None:
            return None
        now = self._clock()
        current = snapshot.current(now)
        old_s = now - snapshot.made_at
        hangs = ""
        if old_s > _STALE_S:
            hangs = f"the supervisor has not responded for {old_s:.0f} s"
        return Truth(current, of_run(self.config, current), hangs, self.wrong.count)
