"""Detaches and reattaches sinks of a stream; all blocking work runs in threads.

Leaving: the sink is closed, the slot copied, and the sink's state made, before anybody
else sends to it; until then the source's position stays where the sink is. Coming back:
the source's stream keeps what it has for the sink, the other worker streams up to there
and ends, and who holds its state then, under its lock, knows that nothing else sends.
"""

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from walstream.errors import ConfigError, Transient, WalstreamError
from walstream.lsn import NEVER, Lsn, show
from walstream.pipeline.ports import Sink
from walstream.pipeline.reattach import JoiningSink
from walstream.pipeline.sent_position import Given
from walstream.sources.postgres.detached import feed_record, slot_copy
from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    BACK,
    COPYING,
    DETACHED,
    DROPPED,
    JOINS,
    DetachedSink,
)
from walstream.sources.postgres.detached.reattach import ReattachAttempt, find_near
from walstream.sources.postgres.detached.slot_copy import Home
from walstream.sources.report import DetachedReport
from walstream.state.store import LmdbStore
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT, LSN, SINK, SLOT

_AGAIN_S: Final = 5.0
_LOOK_EVERY_S: Final = 1.0
_log = structlog.get_logger()


@dataclass(slots=True)
class _Leaving:
    """A sink whose copy is being made."""

    sink: Sink
    note: DetachedSink
    work: Future[None]
    again_at: float = 0.0
    said: str = ""


class SinkMembership:
    """The sinks of one source's stream. Methods are called by its loop alone."""

    def __init__(
        self,
        home: Home,
        positions: LmdbStore,
        wake: Callable[[], None],
        *,
        given_up: Collection[str] = (),
    ) -> None:
        """Sinks of `given_up` are dropped where others get a copy of the slot."""
        self._home = home
        self._positions = positions
        self._wake = wake
        self._given_up = given_up
        self._threads = runtime.thread_pool(8, thread_name_prefix="members")
        self._notes: dict[str, DetachedSink] = {}
        self._leaving: dict[str, _Leaving] = {}
        self._near: Future[str | None] | None = None
        self._next_look = 0.0
        self._before: Lsn = NEVER  # where the stream was at the last look
        self._joining: ReattachAttempt | None = None
        self._tidying: dict[str, Future[None]] = {}  # back, its copy not yet dropped
        self._over = runtime.event()
        self._open: Callable[[str], Sink] | None = None
        self.given: Callable[[], Given | None] = lambda: None  # commits, to sinks

    def settle(self, sinks: Iterable[str]) -> set[str]:
        """Tidy up what a start before left; name those that are not in the stream."""
        wanted = set(sinks)
        feed_record.follow(self._home, self._positions, wanted)
        for sink in JOINS.keys(self._positions):
            self._positions.write(JOINS.of(sink).entry(None))
        for sink, note in DETACHED.read_all(self._positions).items():
            found = self._settle(sink, note, wanted=sink in wanted)
            if found is not None:
                self._notes[sink] = found
                _log.warning(
                    "sink is dropped: it gets nothing"
                    if found.phase == DROPPED
                    else "sink is detached: it streams from a copy of the slot",
                    **{SINK: sink, ERROR: found.why},
                )
        if wanted and wanted <= self._notes.keys():
            raise ConfigError(
                f"no sink of source {self._home.source!r} is in its stream: each was "
                "detached or dropped",
                hint="put a sink back that was taken out of its `sinks`, or give it "
                "another; or start from scratch with all of them: walstream positions "
                f"reset {self._home.source}",
            )
        if len(wanted) > 1:  # else none is ever detached
            self._say_forgotten(sorted(wanted - set(self._notes)))
        return set(self._notes)

    def _say_forgotten(self, sinks: Iterable[str]) -> None:
        for slot in slot_copy.forgotten(self._home, sinks):
            _log.error(
                "a slot keeps WAL for nobody: it was a detached sink's, of which this "
                "state folder does not know",
                **{
                    SLOT: slot,
                    HINT: f"if it is not needed: walstream slots drop {slot}",
                },
            )

    def _settle(
        self, sink: str, note: DetachedSink, *, wanted: bool
    ) -> DetachedSink | None:
        """Tidy up after a sink; give what is still so, None: it is in the stream."""
        gives_up = note.phase == AWAY and wanted and sink in self._given_up
        if note.phase != DROPPED and (gives_up or not wanted or note.phase != AWAY):
            slot_copy.drop(self._home, sink, note.slot)
        if gives_up:
            note = replace(note, phase=DROPPED)
        elif not wanted or note.phase in {COPYING, BACK}:
            self._positions.write(DETACHED.of(sink).entry(None))
            return None
        self._positions.write(DETACHED.of(sink).entry(note))
        return note

    @property
    def away(self) -> set[str]:
        """Name those that stream elsewhere, and will come back."""
        return {name for name, note in self._notes.items() if note.phase != DROPPED}

    @property
    def oldest(self) -> Lsn:
        """Return from where on the keys of tables have to be known for them."""
        resumes = (self._notes[name].resume for name in self.away)
        return min(resumes, default=NEVER)

    def opens(self, open_sink: Callable[[str], Sink]) -> None:
        """Let sinks come back, each as `open_sink` makes it."""
        self._open = open_sink

    @property
    def whole(self) -> bool:
        """Return whether no sink is detached, nor on its way; given up ones are not."""
        gone = bool(self.away)
        tidying = any(not work.done() for work in self._tidying.values())
        return not (gone or self._leaving or self._joining or tidying)

    def report(self) -> dict[str, DetachedReport]:
        """Return those that are not in the stream; from any thread."""
        leaving = {name: one.note for name, one in dict(self._leaving).items()}
        return {
            name: DetachedReport(
                note.phase,
                note.slot,
                note.since,
                note.why,
                waits=one.said if (one := self._leaving.get(name)) else "",
            )
            for name, note in {**self._notes, **leaving}.items()
        }

    # leaving

    def release(self, sink: Sink, resume: Lsn, why: str) -> None:
        """Close a sink that leaves; let another worker continue from `resume`."""
        drops = sink.name in self._given_up
        slot = self._home.copy_of(sink.name)
        note = DetachedSink(
            DROPPED if drops else COPYING, slot, runtime.time(), why, resume
        )
        said = {SINK: sink.name, ERROR: why, LSN: show(resume)}
        if drops:
            _log.error(
                "sink is dropped, as its on_failure says: it gets nothing from here on",
                **said,
            )
        else:
            _log.error(
                "sink is detached: it gets a copy of the slot",
                **said,
                **{
                    SLOT: slot,
                    HINT: "it comes back by itself when it can take records again",
                },
            )
        joining = self._joining
        if joining is not None and joining.sink == sink.name:  # it was just back
            self._joining = None
            self._notes.pop(sink.name, None)
            if joining.work is not None:
                self._tidying[sink.name] = self._do(self._tidy_after, joining)
        self._notes.pop(sink.name, None)
        work = self._do(self._release, sink, note, self.given())
        self._leaving[sink.name] = _Leaving(sink, note, work)

    def gone(self, sink: Sink) -> bool:
        """Return whether another worker keeps its `resume` now."""
        leaving = self._leaving.get(sink.name)
        if leaving is None:
            return True
        if not leaving.work.done():
            return False
        error = leaving.work.exception()
        if error is None:
            phase = DROPPED if leaving.note.phase == DROPPED else AWAY
            self._notes[sink.name] = replace(leaving.note, phase=phase)
            del self._leaving[sink.name]
            return True
        self._release_again(leaving, error)
        return False

    def _release_again(self, leaving: _Leaving, error: BaseException) -> None:
        """Log what is waited for, once, and try again: the source keeps its WAL."""
        if not isinstance(error, WalstreamError):
            raise error
        now = runtime.monotonic()
        if leaving.said != str(error.args[0]):
            leaving.said = str(error.args[0])
            _log.error(
                "sink cannot get a copy of the slot: the source's position waits",
                **{SINK: leaving.sink.name, ERROR: leaving.said, HINT: error.hint},
            )
            leaving.again_at = now + _AGAIN_S
        elif now >= leaving.again_at:
            leaving.again_at = now + _AGAIN_S
            name = leaving.sink.name
            leaving.work = self._do(self._copy, name, leaving.note, self.given())

    def _release(self, sink: Sink, note: DetachedSink, given: Given | None) -> None:
        # what is in flight may arrive later than what the other one sends
        sink.close()
        if (tidying := self._tidying.get(sink.name)) is not None:
            tidying.result()  # of its last return: the names are the same
        self._copy(sink.name, note, given)

    def _copy(self, sink: str, note: DetachedSink, given: Given | None) -> None:
        if note.phase != DROPPED and DETACHED.of(sink).read(self._positions) is None:
            slot_copy.check_free(self._home, note.slot)
        self._positions.write(DETACHED.of(sink).entry(note))
        if note.phase == DROPPED:
            return
        slot_copy.make(self._home, self._positions, sink, note, given)
        self._positions.write(DETACHED.of(sink).entry(replace(note, phase=AWAY)))

    # coming back

    def arriving(self, place: Lsn) -> Sink | None:
        """Return a sink that is to be sent everything from `place` on; None: nobody."""
        if self._joining is not None or self._open is None:
            return None
        if self._near is None:
            away = [name for name, note in self._notes.items() if note.phase == AWAY]
            if away and runtime.monotonic() >= self._next_look:
                where = self._home, self._positions
                self._near = self._do(find_near, *where, away, self._before)
                self._before = place
            return None
        if not self._near.done():
            return None
        near, self._near = self._near, None
        self._next_look = runtime.monotonic() + _LOOK_EVERY_S
        # what cannot be read now may be read later
        name = None if near.exception() else near.result()
        if name is None:
            return None
        self._joining = joining = ReattachAttempt(name, self._notes[name], place)
        joining.work = self._do(joining.run, self._home, self._positions)
        return JoiningSink(self._open(name), self._ended, self._not_coming)

    def _ended(self) -> Lsn | None:
        """Return the LSN below which the other worker delivered all, when it has."""
        joining = self._joining
        if joining is None or joining.work is None:
            raise Transient("it is not coming")
        if not joining.work.done():
            return None
        place = joining.work.result()
        note = self._notes.pop(joining.sink)
        _log.info(
            "sink is back in the source's stream",
            **{SINK: joining.sink, LSN: show(place)},
        )
        self._joining = None
        self._tidying[joining.sink] = self._do(self._tidy, joining.sink, note.slot)
        return place

    def _not_coming(self, error: WalstreamError | None) -> bool:
        """Note why a sink will not join; False: it is too late for that."""
        joining = self._joining
        if joining is None or joining.decide(comes=False):
            return False
        self._joining = None
        self._next_look = runtime.monotonic() + _AGAIN_S
        if error is not None:
            _log.warning(
                "sink could not come back and still streams from its copy",
                **{SINK: joining.sink, ERROR: str(error.args[0])},
            )
        return True

    def _tidy_after(self, joining: ReattachAttempt) -> None:
        """Tidy up after a sink that failed as soon as it was back."""
        if joining.work is not None:
            joining.work.result()
        self._tidy(joining.sink, self._home.copy_of(joining.sink))

    def _tidy(self, sink: str, slot: str) -> None:
        """Drop what is no longer needed; retry until that is done."""
        while not self._over.is_set():
            try:
                slot_copy.drop(self._home, sink, slot)
                self._positions.write(DETACHED.of(sink).entry(None))
            except WalstreamError as error:
                _log.warning(
                    "the copy of the slot cannot be dropped yet",
                    **{SINK: sink, SLOT: slot, ERROR: str(error.args[0])},
                )
                self._over.wait(_AGAIN_S)
            else:
                return

    def _do(self, work: Callable[..., Any], *arguments: Any) -> "Future[Any]":
        future = self._threads.submit(work, *arguments)
        future.add_done_callback(lambda _: self._wake())
        return future

    def close(self) -> None:
        """Wait for nobody; what was begun is settled by the next start."""
        self._over.set()
        if self._joining is not None:
            self._joining.decide(comes=False)
        self._threads.shutdown(wait=True, cancel_futures=True)
