"""What the supervisor puts up for the threads that answer, and the last minutes of it.

One writer, any number of readers, no lock: every object is replaced, never changed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from walstream.config import Config
from walstream.service.http.token_failures import WrongTokens
from walstream.sources.report import PollReport, StreamReport, WorkerReport
from walstream.status.model import SourceStatus, Status
from walstream.status.snapshot import InstanceSnapshot
from walstream.status.status import of_run
from walstream.status.worker_state import WorkerState
from walstream.telemetry import runtime

SAMPLES: Final = 150
EVERY_S: Final = 2.0
_STALE_S: Final = 10.0  # the supervisor turns at least twice a second


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment of one source, for the charts."""

    at: float  # unix seconds
    lag_s: float | None
    ops_per_s: float | None


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
    """The last snapshot, and a sample of each source every few seconds."""

    def __init__(
        self, config: Config, clock: Callable[[], float] = runtime.monotonic
    ) -> None:
        self.config = config
        self.wrong = WrongTokens()
        self._clock = clock
        self._snapshot: InstanceSnapshot | None = None
        self._sampled_at: float | None = None
        self.samples: dict[str, tuple[Sample, ...]] = {}  # by source, the oldest first

    def publish(self, snapshot: InstanceSnapshot) -> None:
        """Put up another one; called by the supervisor's loop alone."""
        self._snapshot = snapshot
        now = self._clock()
        if self._sampled_at is None or now - self._sampled_at >= EVERY_S:
            self._sampled_at = now
            self.samples = {
                name: (*self.samples.get(name, ()), _sample(snapshot.at, worker))[
                    -SAMPLES:
                ]
                for name, worker in snapshot.sources.items()
            }

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


def _sample(at: float, worker: WorkerState) -> Sample:
    """Return what a worker says now; a gap where it says nothing."""
    if worker.pid is None or worker.silent:
        return Sample(at, None, None)
    stream = worker.report.stream
    return Sample(at, stream.lag_s if stream else None, _rate(worker.report))


def _rate(report: WorkerReport) -> float | None:
    source = report.source
    if source is None:
        return None
    if isinstance(source, PollReport):
        return sum(one.rows_per_s or 0.0 for one in source.tables.values())
    if isinstance(source, StreamReport) and source.backfill:
        return source.backfill.rows_per_s
    return source.ops_per_s
