"""Recent events of sources, kept in memory: states, errors, restarts.

Events are the differences of two snapshots. They hold what the workers report: no row
values, no secrets.
"""

from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from walstream.pipeline.outage import KAFKA
from walstream.sources.report import SinkReport
from walstream.status.snapshot import InstanceSnapshot
from walstream.status.worker_state import WorkerState, state_of

EVENTS: Final = 100
_LONGEST: Final = 300  # characters of a text
_GOOD: Final = frozenset({"streaming", "polling", "backfilling"})
_BAD: Final = frozenset({"failed", "silent", "waiting"})


@dataclass(frozen=True, slots=True)
class Event:
    """One thing that happened to a source, or to a detached sink: SOURCE/SINK."""

    at: float  # unix seconds, when it happened last
    name: str
    what: str
    look: str  # good | calm | warn | bad
    count: int = 1  # how often it came, one after the other


class EventLog:
    """The last events, the newest first."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque(maxlen=EVENTS)
        self._before: Mapping[str, WorkerState] = {}
        self._errors: dict[str, float] = {}  # when the last one was, by name
        self.events: tuple[Event, ...] = ()  # replaced, never changed

    def see(self, snapshot: InstanceSnapshot) -> None:
        """Note what is different since the snapshot before."""
        workers = {**snapshot.sources, **snapshot.away}
        found = [
            *_differences(self._before, workers, snapshot.at),
            *self._new_errors(workers),
        ]
        self._before = workers
        for event in found:
            self._note(event)
        if found:
            self.events = tuple(
                sorted(self._events, key=lambda event: event.at, reverse=True)
            )

    def _new_errors(self, workers: Mapping[str, WorkerState]) -> Iterator[Event]:
        """Return what has not been seen: a new process tells of none for a moment."""
        for name, worker in workers.items():
            error = worker.report.error
            if error is not None and error.at != self._errors.get(name):
                self._errors[name] = error.at
                what = f"stopped: {error.error}" if error.final else error.error
                yield Event(error.at, name, _cut(what), "bad")

    def _note(self, event: Event) -> None:
        """Keep it; the same thing once more is counted."""
        for index, last in enumerate(self._events):
            if last.name == event.name:
                if last.what == event.what:
                    del self._events[index]
                    event = replace(event, count=last.count + 1)
                break
        self._events.appendleft(event)


def _differences(
    before: Mapping[str, WorkerState], now: Mapping[str, WorkerState], at: float
) -> Iterator[Event]:
    for name, worker in now.items():
        last = before.get(name, WorkerState())
        yield from _of_process(name, last, worker, at)
        yield from _of_sinks(name, last, worker, at)
        yield from _of_state(name, before.get(name), worker, at)


def _of_process(
    name: str, last: WorkerState, worker: WorkerState, at: float
) -> Iterator[Event]:
    code = worker.died_with
    if code is not None and last.died_with is None:
        what = f"worker process {last.pid or ''} ended with exit code {code}"
        yield Event(at, name, f"{what}; it is started again", "bad")
    if worker.pid is not None and worker.pid != last.pid:
        yield Event(at, name, f"worker process {worker.pid} started", "calm")


def _of_sinks(
    name: str, last: WorkerState, worker: WorkerState, at: float
) -> Iterator[Event]:
    waited, waits = _waiting(last), _waiting(worker)
    for sink, one in waits.items():
        if sink not in waited:
            on = one.outage.of if one.outage else KAFKA
            on = "a handler" if one.handler_waits else on
            why = f": {one.outage.why}" if one.outage else ""
            yield Event(at, name, _cut(f"sink {sink} waits for {on}{why}"), "bad")
    for sink in sorted(waited.keys() - waits.keys()):
        now = worker.report.sinks.get(sink)
        if now is not None and not now.waiting:
            yield Event(at, name, f"sink {sink} delivers again", "good")
    stream, stream_before = worker.report.stream, last.report.stream
    if stream is not None and stream_before is not None:
        for sink in stream.away.keys() - stream_before.away.keys():
            why = stream.away[sink].why
            yield Event(at, name, _cut(f"sink {sink} is detached: {why}"), "warn")
        for sink in sorted(stream_before.away.keys() - stream.away.keys()):
            yield Event(at, name, f"sink {sink} is attached again", "good")


def _waiting(worker: WorkerState) -> dict[str, SinkReport]:
    """Return sinks that wait; each does for a moment while its worker starts."""
    starts = worker.report.state == "starting"
    return {
        sink: one
        for sink, one in worker.report.sinks.items()
        if one.waiting and (one.outage or not starts)
    }


def _of_state(
    name: str, last: WorkerState | None, worker: WorkerState, at: float
) -> Iterator[Event]:
    found, before = state_of(worker), state_of(last)
    if found is None or found[0] == (before[0] if before else ""):
        return
    state = found[0]
    if (state == "starting" and worker.pid) or worker.died_with is not None:
        return  # the process's own event says so
    if state in _GOOD:
        look = "good"
    elif state in _BAD:
        look = "bad"
    else:
        look = "calm"
    yield Event(at, name, state, look)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
