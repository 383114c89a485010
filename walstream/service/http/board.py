"""What the supervisor puts up for the threads that answer, and the last minutes of it.

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
    """How all is, at one moment."""

    snapshot: InstanceSnapshot
    status: Status
    hangs: str = ""  # why the supervisor itself cannot be believed
    wrong_tokens: int = 0

    @property
    def problems(self) -> list[tuple[str, str]]:
        """Return what is red, each with the source's name; "" is the supervisor's."""
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
        """Name what does not flow yet, or any more."""
        if self.snapshot.stopping:
            return ["walstream is stopping"]
        return [
            f"source {source.name!r} is {source.state}"
            for source in self.status.sources
            if not is_ready(source)
        ]


def is_ready(source: SourceStatus) -> bool:
    """Return whether it does its work, or has none left."""
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
        """Put up another one; called by the supervisor's loop alone."""
        self._snapshot = snapshot
        self.series.see(snapshot, self._clock())
        self.log.see(snapshot)

    def truth(self) -> Truth | None:
        """Judge what is known, now; None: nothing is yet."""
        snapshot = self._snapshot
        if snapshot is None:
            return None
        now = self._clock()
        current = snapshot.current(now)
        old_s = now - snapshot.made_at
        hangs = f"the supervisor hangs for {old_s:.0f} s" if old_s > _STALE_S else ""
        return Truth(current, of_run(self.config, current), hangs, self.wrong.count)
