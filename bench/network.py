"""A Kafka in a network: it answers after some milliseconds, not at once.

On one machine answers come in a fraction of a millisecond, which hides what a program
does while it waits for them. So the same backlog is drained, and the same open loop
written, with a Kafka that is asked directly and over links, by turns. Each link is
asked all the while how long an answer takes. A link that is faster than it should be
ends the benchmark, as does a program that went round its link; a run over one that was
far slower is void.
"""

import functools
import itertools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Final

from bench import drain, latency, load, programs
from bench.drain import Wanted
from bench.far_kafka import Link, RoundTrip
from bench.latency import Latency, OpenLoop
from bench.place import Place
from bench.programs import Variant
from bench.shapes import SHAPES

RATE: Final = 1_000
LABEL: Final = f"{RATE:,} tx/s"
_SLOWER: Final = 1.25  # times what it should be, and
_SLOWER_MS: Final = 1.0  # what the machine itself takes
_LEAST_SENT: Final = 5  # bytes of a row, however well it is compressed


@dataclass
class FarLatency(Latency):
    """An open loop with a Kafka that far away."""

    cpu_percent: float = 0.0  # of one core, all its processes
    answer_ms: float = 0.0  # as measured meanwhile, the median


@dataclass
class Far:
    """A way to Kafka: over a link, or (None) directly."""

    variant: Variant
    link: Link | None = None

    def check(self, rows: int, sent_before: int, since: float) -> RoundTrip | None:
        """Refuse figures that were not taken over this link, or of none."""
        if self.link is None:
            return None
        if self.link.sent - sent_before < rows * _LEAST_SENT:
            raise SystemExit(f"{self.variant.name}: it went another way")
        found = self.link.round_trip(since)
        if found.least_ms < self.link.answer_ms:
            took = f"an answer took {found.least_ms:.2f} ms"
            raise SystemExit(f"{self.variant.name}: {took}")
        return found

    def slow(self, found: RoundTrip | None) -> str:
        """Say how much slower than it should be the link was; "": it was not."""
        if self.link is None or found is None:
            return ""
        wanted = self.link.answer_ms
        if found.median_ms <= wanted * _SLOWER + _SLOWER_MS:
            return ""
        return f"answers took {found.median_ms:.1f} ms, not {wanted}"

    @property
    def sent(self) -> int:
        return self.link.sent if self.link else 0


def measure(
    place: Place,
    links: list[Link],
    wanted: Wanted,
    seconds: int,
    say: Callable[[str], None],
) -> dict[str, list[Any]]:
    """Drain a backlog, then run the open loop, by each way in turn."""
    ways = [Far(one) for one in wanted.variants]
    ways += [Far(programs.away(one.answer_ms, one.bootstrap), one) for one in links]
    figures = _drained(place, ways, wanted, say)
    place.sql(f"DROP PUBLICATION {programs.PUBLICATION}")
    load.prepare(place)
    programs.publish(place, [load.TABLE])
    loop = OpenLoop(place, itertools.count())
    for run in range(wanted.runs):
        first = run % len(ways)
        for way in ways[first:] + ways[:first]:
            found = _looped(place, loop, way, seconds)
            label = f"{way.variant.name}, {LABEL}"
            used = f"{found.cpu_percent:.1f} % of a core"
            say(f"{label}, run {run + 1}: p99 {found.p99_ms:.1f} ms, {used}")
            figures.setdefault(label, []).append(found)
    for link in links:
        figures[f"an answer, {link.answer_ms} ms away"] = [link.round_trip()]
    return figures


def _drained(
    place: Place, ways: list[Far], wanted: Wanted, say: Callable[[str], None]
) -> dict[str, list[Any]]:
    began = time.monotonic()
    before = [way.sent for way in ways]
    shape = SHAPES["network"](place.rows)
    variants = [way.variant for way in ways]
    found = drain.measure(
        place, shape, Wanted(wanted.runs, variants, debezium=False), say
    )
    for way, sent in zip(ways, before, strict=True):
        answered = way.check(shape.changes * wanted.runs, sent, began)
        if words := way.slow(answered):
            say(f"{way.variant.name}, drains: {words}")
    return dict(found)


def _looped(place: Place, loop: OpenLoop, way: Far, seconds: int) -> FarLatency:
    began, sent = time.monotonic(), way.sent
    start = functools.partial(programs.walstream, place, way.variant)
    found = loop.run(start, RATE, seconds, latency.WARM_S)
    answered = way.check(RATE * seconds, sent, began)
    found.void = found.void or way.slow(answered)
    return FarLatency(
        **asdict(found),
        cpu_percent=found.cpu_us_per_row * RATE / 1e4,
        answer_ms=answered.median_ms if answered else 0.0,
    )
