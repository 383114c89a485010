"""How long after its commit a row is received, under an open loop at a fixed rate.

A row has the server's clock just before its commit, the receiver's is the same clock. A
run in which the writer fell behind its schedule is void, and says so.
"""

import functools
import itertools
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Final

from bench import load, programs
from bench.drain import Wanted
from bench.load import Load
from bench.place import Place
from bench.programs import DEBEZIUM
from bench.watch import Program

_RATES: Final = (1_000, 10_000)
_DEBEZIUM_RATE: Final = 1_000
_DEBEZIUM_LINGER_MS: Final = 1
_SHARE: Final = 0.7
_LEAST_TRIED: Final = 1_000.0
_MOST_TRIES: Final = 3  # of a rate
_TRIED_S: Final = 5
WARM_S: Final = 3.0  # of each run, not counted
_DEBEZIUM_WARM_S: Final = 15.0  # until Java has compiled
_LATE_P99_S: Final = 0.05
_LATE_MOST_S: Final = 1.0
_KEEPS_UP_MS: Final = 500.0  # p99 of a rate that is sustained
_START_S: Final = 120.0
_LONGEST_S: Final = 600.0

Received = list[tuple[int, float, float]]  # number, written at, received at


@dataclass
class Latency:
    """What one run found."""

    rate: float
    p50_ms: float
    p99_ms: float
    max_ms: float
    late_p99_ms: float  # of the writer, behind its schedule
    cpu_us_per_row: float = 0.0
    rss_mb: float = 0.0
    void: str = ""  # why it does not count

    @property
    def kept_up(self) -> bool:
        """Whether it counts, and its reader was in time."""
        return not self.void and self.p99_ms <= _KEEPS_UP_MS


Figures = dict[str, list[Latency]]
Start = Callable[[str], AbstractContextManager[Program]]


def measure(
    place: Place, seconds: int, wanted: Wanted, say: Callable[[str], None]
) -> Figures:
    """Take every rate in turn; the highest that is sustained is looked for first."""
    load.prepare(place)
    programs.publish(place, [load.TABLE])
    figures: Figures = {}
    bench = OpenLoop(place, itertools.count())
    for variant in wanted.variants:
        bench.exact = not variant.transactional
        start = functools.partial(programs.walstream, place, variant)
        try_it = functools.partial(bench.tried, start)
        try_it(_LEAST_TRIED)  # so that servers are warm
        top = sustained(try_it, say, min(wanted.runs, _MOST_TRIES))
        say(f"{variant.name} sustains {top.rate:,.0f} tx/s")
        figures[f"{variant.name}, the highest that it sustains"] = [top]
        rates: list[tuple[str, float]] = [(f"{rate:,} tx/s", rate) for rate in _RATES]
        rates.append((f"{_SHARE * 100:.0f} % of what it sustains", _SHARE * top.rate))
        for label, rate in rates:
            found = [
                bench.run(start, rate, seconds, WARM_S) for _ in range(wanted.runs)
            ]
            figures[f"{variant.name}, {label}"] = found
            say(f"{variant.name}, {label}: p99 {found[-1].p99_ms:.1f} ms")
    bench.exact = True
    if wanted.debezium:
        start = functools.partial(programs.debezium, place, _DEBEZIUM_LINGER_MS)
        figures[f"{DEBEZIUM}, {_DEBEZIUM_RATE:,} tx/s"] = [
            bench.run(start, _DEBEZIUM_RATE, seconds, _DEBEZIUM_WARM_S)
            for _ in range(wanted.runs)
        ]
    return figures


@dataclass
class OpenLoop:
    """Runs of one table, each with a slot and a topic of its own."""

    place: Place
    numbers: "itertools.count[int]"
    exact: bool = True  # does each row take one offset?

    def tried(self, start: Start, rate: float) -> Latency:
        return self.run(start, rate, _TRIED_S, WARM_S)

    def run(self, start: Start, rate: float, seconds: float, warm_s: float) -> Latency:
        """Write at this rate while it is streamed and received."""
        name = f"run{next(self.numbers)}"
        programs.make_slot(self.place, name)
        topic = self.place.topic(f"{name}.public.{load.TABLE}")
        low = load.next_key(self.place)
        first = Load(self.place, low, 100, 0.1)
        planned = Load(self.place, low + first.rows, rate, seconds + warm_s)
        rows = first.rows + planned.rows
        with start(name) as program:
            with first:  # so that it streams
                first.wait()
            topic.filled(first.rows, program, _START_S)
            with receiving(self.place, topic.name, rows) as receiver:
                program.mark()
                with planned:
                    planned.wait()
                received = receiver.told()
            used = program.since_mark_s() * 1e6 / planned.rows
        topic.close(rows, exact=self.exact)
        topic.delete()
        programs.drop_slot(self.place, name)
        if sorted(one[:2] for one in received) != load.written(self.place, low):
            raise SystemExit(f"{name}: what was received is not what was written")
        found = latency(planned, received, warm_s)
        found.cpu_us_per_row, found.rss_mb = used, program.rss_mb
        return found


def sustained(
    run: Callable[[float], Latency], say: Callable[[str], None], tries: int
) -> Latency:
    """Double the rate until writer or reader falls behind; then try one between."""

    def tried(rate: float) -> Latency:  # again if it fails: others use the machine, too
        for _ in range(tries):
            found = run(rate)
            say(f"tried {rate:,.0f} tx/s: p99 {found.p99_ms:.0f} ms {found.void}")
            if found.kept_up:
                break
        return found

    best = found = tried(_LEAST_TRIED)
    while found.kept_up:
        best, found = found, tried(found.rate * 2)
    if best.kept_up:
        found = tried(best.rate * math.sqrt(2))
    return found if found.kept_up else best


class Receiver:
    """A process that receives, and what it says at its end."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def told(self) -> Received:
        said, _ = self._process.communicate(timeout=_LONGEST_S)
        return [(number, written, at) for number, written, at in json.loads(said)]


@contextmanager
def receiving(place: Place, topic: str, rows: int) -> Iterator[Receiver]:
    command = [sys.executable, "-m", "bench.receiver", "--topic", topic]
    command += ["--bootstrap", place.kafka.bootstrap, "--rows", str(rows)]
    command += ["--partitions", str(place.partitions)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        if process.stdout is None or process.stdout.readline() != "ready\n":
            raise SystemExit("the receiver does not start")
        yield Receiver(process)
    finally:
        process.kill()
        process.wait()


def latency(planned: Load, received: Received, warm_s: float) -> Latency:
    """Reckon what counts: the rows that were due after the warm-up."""
    counted = [
        (received_at - written_at, written_at - planned.due(key))
        for key, written_at, received_at in received
        if planned.due(key) >= planned.begins + warm_s
    ]
    took = sorted(one[0] * 1e3 for one in counted)
    late = sorted(one[1] for one in counted)
    p99_late = percentile(late, 99)
    void = ""
    if p99_late > _LATE_P99_S or late[-1] > _LATE_MOST_S:
        void = f"the writer fell {late[-1]:.1f} s behind, p99 {p99_late * 1e3:.0f} ms"
    return Latency(
        rate=planned.rate,
        p50_ms=percentile(took, 50),
        p99_ms=percentile(took, 99),
        max_ms=took[-1],
        late_p99_ms=p99_late * 1e3,
        void=void,
    )


def percentile(ordered: Sequence[float], share: float) -> float:
    """Give the smallest that so many percent are not above."""
    return ordered[max(math.ceil(len(ordered) * share / 100) - 1, 0)]
