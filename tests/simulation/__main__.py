"""`make simulate`: schedules for so many seconds, from where the last run ended.

A journal keeps what was run on which state of the code; a violation is made short,
written to a file, and ends the run.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any, Final

import orjson

from tests.simulation.installation import installed
from tests.simulation.run import Outcome, run
from tests.simulation.schedule import Schedule
from tests.simulation.search import outcomes, shortest
from tests.support.project.shard import code_state

_JOURNAL: Final = Path(".simulated")
_FAILURES: Final = Path("build/simulation")
_SAY_EVERY_S: Final = 10.0


def main() -> int:
    """Search, or replay one schedule; give the exit code."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="where to begin, instead of resuming")
    parser.add_argument("--schedule", type=Path, help="a file of one that failed")
    given = parser.parse_args()
    with installed():
        if given.schedule is not None:
            return _replay(Schedule.from_json(given.schedule.read_text("utf-8")))
        return _search(given.seconds, given.seed)


def _replay(schedule: Schedule) -> int:
    outcome, again = run(schedule), run(schedule)
    print(outcome.violation or outcome.stopped or "nothing is violated")
    same = outcome.digest == again.digest
    print(f"digest {outcome.digest:08x}, {'the same' if same else 'ANOTHER'} again")
    return 1 if outcome.violation else 0


def _search(seconds: float, seed: int | None) -> int:
    journal = Journal(_JOURNAL)
    first = journal.next if seed is None else seed
    began = said = time.monotonic()
    count = lives = records = stops = 0
    failed: tuple[int, Outcome] | None = None
    for at, outcome in outcomes(first):
        count += 1
        lives += outcome.lives
        records += outcome.records
        stops += bool(outcome.stopped)
        now = time.monotonic()
        if outcome.violation:
            failed = at, outcome
        if failed or now - began > seconds:
            break
        if now - said > _SAY_EVERY_S:
            said = now
            print(f"{count} schedules, {count / (now - began):.0f}/s", flush=True)
    spent = time.monotonic() - began
    journal.add(
        first=first,
        schedules=count - bool(failed),
        lives=lives,
        records=records,
        stops=stops,
        seconds=round(spent, 1),
        failed=failed and failed[0],
    )
    print(
        f"{count} schedules from seed {first} in {spent:.0f} s ({count / spent:.0f}/s):"
        f" {lives} lives, {records} records, {stops} stops with a reason"
    )
    print(f"{journal.total} schedules in all, {journal.of_this_code} of this code")
    if failed is None:
        return 0
    return _tell(*failed)


def _tell(seed: int, outcome: Outcome) -> int:
    print(f"seed {seed}: {outcome.violation}", file=sys.stderr)
    short = shortest(Schedule.of(seed), outcome.violation)
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
