"""Stalls of a worker, by its reports: pure, no clock.

A worker that reports may still get nowhere: Kafka takes nothing, the server's WAL moves
and the position does not, the loop hangs. Each is said within 30 s of its beginning:
the server is asked how far it is every 10 s.
"""

from collections.abc import Iterator
from typing import Final

from walstream.lsn import WAL_PAGE_HEADER, parse
from walstream.pipeline.outage import KAFKA, Outage
from walstream.sources.report import SinkReport, StreamReport, WorkerReport

STUCK_S: Final = 15.0  # without progress
AWAY_S: Final = 5.0  # a broker that starts anew is back sooner
STARTING_S: Final = 20.0
HANGS_S: Final = 10.0  # a turn of the loop takes milliseconds
_OF_SINKS: Final = frozenset({"waiting", "records"})
_WAITS: Final = "sink {!r} waits for Kafka: its brokers have not answered for {:.0f} s"
_WAITS_OTHERWISE: Final = "sink {!r} has waited for {} for {:.0f} s"
_HANDLER_WAITS: Final = (
    "sink {!r} waits for a handler, which has failed for {:.0f} s: the log says why"
)


def _why(outage: Outage | None) -> str:
    """Return the cause, where it is known, and the cure."""
    return f": {outage.why}: {outage.hint}" if outage else ""


def _waits(name: str, sink: SinkReport, for_s: float) -> str:
    outage = sink.outage
    if sink.handler_waits:
        return _HANDLER_WAITS.format(name, for_s)
    if outage is not None and outage.of != KAFKA:
        return _WAITS_OTHERWISE.format(name, outage.of, for_s) + _why(outage)
    return _WAITS.format(name, for_s) + _why(outage)


class _Still:
    """Since when something has not changed."""

    def __init__(self, now: float, what: object) -> None:
        self._what = what
        self._since = now

    def for_s(self, now: float, what: object) -> float:
        """Take in how it is; tell for how long it has been so."""
        if what != self._what:
            self._what, self._since = what, now
        return now - self._since


class StallWatch:
    """Sees one worker's reports, again and again."""

    def __init__(self) -> None:
        self._still: dict[tuple[str, str], _Still] = {}
        self._target: int | None = None  # WAL that was there when nothing moved

    def look(self, now: float, told: WorkerReport) -> list[str]:
        """Return what stalls; `now` never goes back."""
        of_sinks, of_stream = [*self._sinks(now, told)], [*self._stream(now, told)]
        starting_s = self._for_s(now, "state", "", told.state)
        # a sink that waits is why: nothing more is said then
        if told.state == "starting" and starting_s >= STARTING_S and not of_sinks:
            of_stream.insert(
                0, f"it has been starting for {starting_s:.0f} s: the log says why"
            )
        return of_sinks + of_stream

    def _for_s(self, now: float, what: str, name: str, how: object) -> float:
        still = self._still.setdefault((what, name), _Still(now, how))
        return still.for_s(now, how)

    def _sinks(self, now: float, told: WorkerReport) -> Iterator[str]:
        sinks = told.sinks
        for what, name in list(self._still):
            if what in _OF_SINKS and name not in sinks:
                del self._still[what, name]  # detached: it comes back another one
        for name, sink in sinks.items():
            waiting, handler = sink.waiting, sink.handler_waits
            away_s = self._for_s(now, "waiting", name, (waiting, handler))
            if waiting and away_s >= AWAY_S:
                yield _waits(name, sink, away_s)
            in_flight = sink.in_flight or 0
            seen = (sink.records, bool(in_flight))
            stuck_s = self._for_s(now, "records", name, seen)
            if handler:  # it holds what is under way: Kafka was given none of it
                continue
            if waiting and away_s >= AWAY_S:  # which says why
                continue
            if in_flight and seen[0] is not None and stuck_s >= STUCK_S:
                yield (
                    f"sink {name!r} is stuck: {in_flight:,} records are in flight, "
                    f"and for {stuck_s:.0f} s Kafka took none"
                )

    def _stream(self, now: float, told: WorkerReport) -> Iterator[str]:
        state, stream = told.state, told.stream or StreamReport()
        if (turn_s := stream.turn_s or 0.0) >= HANGS_S:
            yield f"its loop hangs: the last turn began {turn_s:.0f} s ago"
        if state != "streaming":
            self._target = None
        elif (behind_s := self._behind_s(now, stream)) >= STUCK_S:
            yield (
                f"the stream stalls: for {behind_s:.0f} s nothing moved, while the"
                " server has more WAL"
            )

    def _behind_s(self, now: float, told: StreamReport) -> float:
        """Return for how long nothing moved, though there was WAL all that time.

        Behind a row that is larger than a second's limit nothing moves either.
        """
        health, resume = told.health, told.resume
        if not health or not resume or told.held_by:
            self._target = None
            return 0.0
        reached = parse(resume) + WAL_PAGE_HEADER
        records = [one.records for one in told.sinks.values()]
        seen = (told.ops, told.received, resume, records)
        still_s = self._for_s(now, "stream", "", (seen, self._target is None))
        if still_s == 0.0 or self._target is None or reached >= self._target:
            ahead = health.flush_lsn > reached
            self._target = health.flush_lsn if ahead else None
            self._still["stream", ""] = _Still(now, (seen, self._target is None))
            return 0.0
        return still_s
