"""Counts of ops with an unusual result: by table of one sink, over all streams."""

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

KINDS: Final = ("dropped", "skipped", "failed", "parked")

Counts = Mapping[str, Mapping[str, int]]
"""The counts of one sink by table and kind, as `Tally.document` gives them."""


@dataclass(frozen=True, slots=True)
class TallyTotals:
    """One sink's counts over all tables, and each table's."""

    skipped: int
    failed: int
    parked: int
    tables: Counts
    parked_now: int = 0  # of them, those of this run


def totals(kept: Counts) -> TallyTotals:
    """Return the totals of what was kept of one sink."""
    return _totals(Tally.of(kept))


@dataclass(slots=True)
class Tally:
    """Ops of one sink by table, `schema.table`; picklable."""

    dropped: Counter[str] = field(default_factory=Counter)  # no topic, or no form
    skipped: Counter[str] = field(default_factory=Counter)  # a handler gave nothing
    failed: Counter[str] = field(default_factory=Counter)  # a handler took it never
    parked: Counter[str] = field(default_factory=Counter)  # too large for its topic

    def add(self, other: "Tally") -> None:
        for kind in KINDS:
            # never Counter.update of another thread's: it may grow meanwhile
            getattr(self, kind).update(dict(getattr(other, kind)))

    def __bool__(self) -> bool:
        return any(getattr(self, kind) for kind in KINDS)

    def document(self) -> dict[str, dict[str, int]]:
        """Return the counts that there are, by table."""
        found: dict[str, dict[str, int]] = {}
        for kind in KINDS:
            for table, count in dict(getattr(self, kind)).items():
                found.setdefault(table, {})[kind] = count
        return found

    @classmethod
    def of(cls, document: Counts) -> "Tally":
        """Read what `document` gave."""
        tally = cls()
        for table, counts in document.items():
            for kind in KINDS:
                if count := counts.get(kind, 0):
                    getattr(tally, kind)[table] = count
        return tally


class Tallied(Protocol):
    """A sink that has a tally."""

    @property
    def name(self) -> str: ...

    @property
    def tally(self) -> Tally: ...


class Tallies:
    """The tallies of a source's sinks, over all its streams."""

    def __init__(self, kept: Mapping[str, Counts] | None = None) -> None:
        """`kept` is what `kept` gave when the position was last stored."""
        self._kept = {name: Tally.of(one) for name, one in (kept or {}).items()}
        self._ended: dict[str, Tally] = {}  # of sinks of earlier streams of this run
        self._current: dict[str, Tally] = {}
        self._guard = threading.Lock()

    def follow(self, sinks: Iterable[Tallied]) -> None:
        """Count what these sinks do from now on."""
        with self._guard:  # the thread that stores asks, and the one that reports
            for sink in sinks:
                before = self._current.get(sink.name)
                if before is not sink.tally:
                    self._current[sink.name] = sink.tally
                    if before is not None:
                        self.add(sink.name, before)

    def add(self, sink: str, tally: Tally) -> None:
        """Count what was done elsewhere."""
        self._ended.setdefault(sink, Tally()).add(tally)

    def _of_this_run(self, sink: str) -> Tally:
        found = Tally()
        for tallies in (self._ended, self._current):
            if sink in tallies:
                found.add(tallies[sink])
        return found

    def _whole(self, sink: str) -> Tally:
        found = self._of_this_run(sink)
        if sink in self._kept:
            found.add(self._kept[sink])
        return found

    def totals(self, sink: str) -> TallyTotals:
        """Return a sink's totals."""
        now = self._of_this_run(sink).parked.total()
        return _totals(self._whole(sink), now)

    def dropped(self, sink: str) -> dict[str, int]:
        """Return what this process dropped, by table."""
        return dict(self._of_this_run(sink).dropped)

    def kept(self) -> dict[str, dict[str, dict[str, int]]]:
        """Return what is stored with the position."""
        names = {*self._kept, *self._ended, *self._current}
        found = {name: self._whole(name).document() for name in sorted(names)}
        return {name: document for name, document in found.items() if document}


def _totals(tally: Tally, parked_now: int = 0) -> TallyTotals:
    return TallyTotals(
        tally.skipped.total(),
        tally.failed.total(),
        tally.parked.total(),
        tally.document(),
        parked_now,
    )
