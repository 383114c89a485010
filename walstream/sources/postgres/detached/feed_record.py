"""Record of each sink that a source feeds, or fed: what it was not sent meanwhile.

A sink that is put back among the source's `sinks` gets what comes then, and nothing of
what came meanwhile. Only the state folder can tell.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

import structlog

from walstream.errors import WalstreamError
from walstream.lsn import Lsn, show
from walstream.pipeline.state_document import StateDocuments
from walstream.sources.postgres.detached.detached_sink import (
    AWAY,
    DETACHED,
    DROPPED,
    DetachedSink,
    folder_of,
)
from walstream.sources.postgres.detached.slot_copy import Home
from walstream.state.store import LmdbStore
from walstream.telemetry.fields import ERROR, HINT, LSN, SINK

_RENAMED: Final = (
    "if it has another name now, its topics lack them: walstream backfill 'TABLES' "
    "--replace"
)
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class FeedRecord:
    """Record of one sink."""

    left: Lsn = (
        0  # what is below was sent to it, and nothing after; 0: it lacks nothing
    )
    back: Lsn = 0  # it is sent everything from here on; 0: it is out, or lacks nothing

    @property
    def out(self) -> bool:
        """Return whether the source feeds it no longer."""
        return self.left > self.back == 0

    @property
    def gap(self) -> str:
        """Return what it was not sent, in words; "": nothing is known to lack."""
        if not self.left:
            return ""
        end = f"to {show(self.back)}" if self.back else "on"
        return (
            f"changes from {show(self.left)} {end} were not sent to it: it was not "
            "among the source's `sinks` then"
        )

    def fed_from(self, resume: Lsn) -> "FeedRecord":
        """Return what it lacks once it is sent everything from `resume` on.

        A rewind may lead back to what it lacks.
        """
        back = min(self.back, resume) if self.back else resume
        return FeedRecord(self.left, back) if self.left < back else FeedRecord()


FED: Final = StateDocuments("fed/", FeedRecord)
"""By sink."""


def follow(home: Home, positions: LmdbStore, wanted: Collection[str]) -> None:
    """Keep who is fed from the position on; log who no longer is, and what others lack.

    Before what is left of detached sinks is cleared up, which tells where they were.
    """
    position = positions.position()
    resume = position.resume if position else 0
    records, notes = FED.read_all(positions), DETACHED.read_all(positions)
    entries: dict[str, object] = {}
    for sink in {*records, *notes}.difference(wanted):
        known = records.get(sink, FeedRecord())
        if not known.out:
            entries |= _let_go(home, sink, known, notes.get(sink), resume)
    for sink in wanted:
        known = records.get(sink, FeedRecord())
        found = known.fed_from(resume) if known.left else FeedRecord()
        if known.out and found.gap:
            _log.error(
                "sink is among the source's sinks again, and lacks what came meanwhile",
                **{
                    SINK: sink,
                    ERROR: found.gap,
                    HINT: f"walstream backfill 'TABLES' --source {home.source} "
                    "--replace sends the rows",
                },
            )
        if sink not in records or found != known:
            entries |= FED.of(sink).entry(found)
    if entries:
        positions.write(entries)


def _let_go(
    home: Home, sink: str, known: FeedRecord, note: DetachedSink | None, resume: Lsn
) -> Mapping[str, object]:
    """Return what keeps up to where a sink was fed."""
    place = resume
    if note is not None and note.phase in {AWAY, DROPPED}:
        place = _own_resume(home, sink, note)
    if note is not None and note.phase == AWAY:
        _log.error(
            "sink was detached, and the source no longer feeds it: it never gets "
            "the changes from here on",
            **{SINK: sink, LSN: show(place), HINT: _RENAMED},
        )
    else:
        _log.info(
            "sink is no longer fed by the source", **{SINK: sink, LSN: show(place)}
        )
    left = min(known.left, place) if known.left else place
    return FED.of(sink).entry(FeedRecord(left) if left else None)


def _own_resume(home: Home, sink: str, note: DetachedSink) -> Lsn:
    """Return where a sink's own worker came to, or from where nobody sent to it."""
    try:
        with LmdbStore.open_read_only(folder_of(home.folder, sink)) as theirs:
            position = theirs.position() if theirs else None
    except WalstreamError:
        position = None
    return position.resume if position else note.resume


def gaps_of(records: Mapping[str, FeedRecord]) -> dict[str, str]:
    """Return what each sink lacks, in words, by sink."""
    return {sink: record.gap for sink, record in records.items() if record.gap}
