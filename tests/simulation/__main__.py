"""`make simulate`: schedules for so many seconds, from where the last run ended.

A journal keeps what was run on which state of the code; a violation is made short,
written to a file, and ends the run.
"""

import argparse
import gc
import sys
import time
from dataclasses import dataclass
from itertools import count, islice
from multiprocessing import Pool, cpu_count
from pathlib import Path
from typing import Any, Final

import orjson

from tests.simulation.installation import installed
from tests.simulation.run import run
from tests.simulation.schedule import Schedule
from tests.simulation.search import outcomes, shortest
from tests.support.project.shard import code_state

_JOURNAL: Final = Path(".simulated")
_FAILURES: Final = Path("build/simulation")
_SAY_EVERY_S: Final = 10.0
_PART: Final = 20  # schedules that a process runs before it tells
_PARTS: Final = 10  # that it runs at all: each leaves some 25 MB


def main() -> int:
    """Search, or replay one schedule; give the exit code."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="where to begin, instead of resuming")
    parser.add_argument("--jobs", type=int, default=cpu_count(), help="processes")
    parser.add_argument("--schedule", type=Path, help="a file of one that failed")
    given = parser.parse_args()
    with installed():
        if given.schedule is not None:
            return _replay(Schedule.from_json(given.schedule.read_text("utf-8")))
        return _search(given.seconds, given.seed, given.jobs)


def _replay(schedule: Schedule) -> int:
    outcome, again = run(schedule), run(schedule)
    print(outcome.violation or outcome.stopped or "nothing is violated")
    same = outcome.digest == again.digest
    print(f"digest {outcome.digest:08x}, {'the same' if same else 'ANOTHER'} again")
    return 1 if outcome.violation else 0


def _search(seconds: float, seed: int | None, jobs: int) -> int:
    journal = Journal(_JOURNAL)
    first = journal.next if seed is None else seed
    began = said = time.monotonic()
    done = Part()
    starts = count(first, _PART)
    gc.disable()  # a world is full of cycles, which end with its process
    with Pool(jobs, maxtasksperchild=_PARTS) as workers:
        for part in workers.imap(_run_part, starts):
            done.add(part)
            now = time.monotonic()
            if done.failed or now - began > seconds:
                break
            if now - said > _SAY_EVERY_S:
                said = now
                rate = done.schedules / (now - began)
                print(f"{done.schedules} schedules, {rate:.0f}/s", flush=True)
        workers.terminate()
    spent = time.monotonic() - began
    journal.add(
        first=first,
        schedules=done.schedules,
        lives=done.lives,
        records=done.records,
        stops=done.stops,
        seconds=round(spent, 1),
        failed=done.failed and done.failed[0],
    )
    print(
        f"{done.schedules} schedules from seed {first} in {spent:.0f} s"
        f" ({done.schedules / spent:.0f}/s, {done.schedules / done.cpu:.0f} a CPU"
        f" second): {done.lives} lives, {done.records} records,"
        f" {done.stops} stops with a reason"
    )
    print(f"{journal.total} schedules in all, {journal.of_this_code} of this code")
    if done.failed is None:
        return 0
    return _tell(*done.failed)


@dataclass
class Part:
    """How some schedules went, one after the other."""

    schedules: int = 0
    lives: int = 0
    records: int = 0
    stops: int = 0
    cpu: float = 0.0  # seconds
    failed: tuple[int, str] | None = None  # the seed behind them, and what it violates

    def add(self, part: "Part") -> None:
        self.schedules += part.schedules
        self.lives += part.lives
        self.records += part.records
        self.stops += part.stops
        self.cpu += part.cpu
        self.failed = part.failed


def _run_part(first: int) -> Part:
    part, began = Part(), time.process_time()
    for seed, outcome in islice(outcomes(first), _PART):
        if outcome.violation:
            part.failed = seed, outcome.violation
            break
        part.schedules += 1
        part.lives += outcome.lives
        part.records += outcome.records
        part.stops += bool(outcome.stopped)
    part.cpu = time.process_time() - began
    return part


def _tell(seed: int, violation: str) -> int:
    print(f"seed {seed}: {violation}", file=sys.stderr)
    short = shortest(Schedule.of(seed), violation)
    _FAILURES.mkdir(parents=True, exist_ok=True)
    file = _FAILURES / f"{seed}.json"
    file.write_text(f"{short.to_json()}\n", "utf-8")
    print(f"shortest: {run(short).violation}\n{short.to_json()}", file=sys.stderr)
    print(f"replay it: make simulate SCHEDULE={file}", file=sys.stderr)
    return 1


class Journal:
    """What was run: a line of JSON for each run."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._code = code_state(Path.cwd())
        text = path.read_text("utf-8") if path.exists() else ""
        self._runs: list[dict[str, Any]] = [
            orjson.loads(line) for line in text.splitlines()
        ]

    @property
    def next(self) -> int:
        """The seed behind all that were run."""
        ends = [one["first"] + one["schedules"] for one in self._runs]
        return max(ends, default=0)

    @property
    def total(self) -> int:
        return sum(one["schedules"] for one in self._runs)

    @property
    def of_this_code(self) -> int:
        return sum(one["schedules"] for one in self._runs if one["code"] == self._code)

    def add(self, **told: object) -> None:
        self._runs.append({"code": self._code, **told})
        with self._path.open("ab") as file:
            file.write(orjson.dumps(self._runs[-1]) + b"\n")


if __name__ == "__main__":
    sys.exit(main())
