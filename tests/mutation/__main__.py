"""`make mutants`: each small change of a module, against the module's own tests."""

import argparse
import sys
import time
from collections.abc import Collection, Sequence
from typing import Final

from tests.museum import trial
from tests.museum.journal import Journal, digest
from tests.museum.tree import ROOT, Tree, say
from tests.museum.trial import Outcome
from tests.mutation.modules import MODULES, PARTS
from tests.mutation.operators import Change, changes
from tests.mutation.preload import Preload
from tests.mutation.survivors import explained

JOURNAL: Final = ".mutants-journal"
GOAL: Final = 95.0  # percent
_LEAST_S: Final = 15  # more than this and a few times what the tests take is no end
_CPU_S: Final = 600
_WALL_S: Final = 300.0
_TIMES: Final = 4


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("--module", default="", help="only modules with this in a path")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args(arguments)
    end = time.monotonic() + options.seconds
    journal = Journal(ROOT / JOURNAL)
    trial.load()
    below = 0
    with Tree.copied() as tree:
        preload = Preload(tree.root)
        for module, tests in MODULES.items():
            if options.module in module:
                measured = MeasuredModule(tree, module, tests, journal, preload)
                below += not measured.measured(end)
    return 1 if below else 0


class MeasuredModule:
    """One module, its tests, and what is known of them."""

    def __init__(
        self,
        tree: Tree,
        path: str,
        tests: tuple[str, ...],
        journal: Journal,
        preload: Preload | None = None,
    ) -> None:
        self._tree = tree
        self._path = path
        self._tests = tests
        self._journal = journal
        self._source = (tree.root / path).read_text("utf-8")
        self._tested = [(tree.root / test).read_text("utf-8") for test in tests]
        self._preload = preload
        self._kept: Collection[str] = ()
        self._limit_s = 0  # that a mutant may take; 0: not yet known

    def measured(self, end: float) -> bool:
        """Try what is not known; print the score; return whether it is good."""
        reasons = explained(self._path)
        part = PARTS.get(self._path, "")
        every = [one for one in changes(self._source) if one.place.startswith(part)]
        alive, killed = [], 0
        for number, change in enumerate(every):
            if time.monotonic() >= end:
                say(f"{self._path}: cut after {number} of {len(every)} mutants")
                return False
            outcome = self._outcome(change)
            if outcome.killer:
                killed += 1
            else:
                alive.append(change)
        counted = len(every) - sum(_is_equal(reasons, one) for one in alive)
        score = 100 * killed / counted if counted else 100.0
        say(
            f"{self._path}: {score:.1f} %, {len(every)} mutants, {killed} killed, "
            f"{len(every) - counted} equivalent"
        )
        unexplained = [change for change in alive if change.place not in reasons]
        for change in unexplained:
            say(f"  line {change.line}, {change.place}")
        return score >= GOAL and not unexplained

    def _outcome(self, change: Change) -> Outcome:
        name = f"{self._path}: {change.place}"
        of_source = digest(self._source)
        of_all = digest(self._source, *self._tested)
        killed = self._journal.known(name, of_source)
        known = killed or self._journal.known(name, of_all)
        if known is not None:
            return known
        limit = self._limit()
        with self._tree.broken(self._path, change.text):
            outcome = self._tried(limit)
        # what a test killed stays dead; what lives on may meet a better test
        about = of_source if outcome.killer else of_all
        self._journal.keep(name, about, outcome)
        return outcome

    def _tried(self, limit: int) -> Outcome:
        outcome = Outcome("", 0.0)
        for test in self._tests:
            outcome = self._run([test], limit, limit)
            if outcome.killer:
                return outcome
        return outcome

    def _limit(self) -> int:
        """Return how many seconds the tests may take, of a processor and in all."""
        if not self._limit_s:
            if self._preload is not None:
                self._preload.load(self._tests)
                self._kept = self._preload.untouched(self._path)
            healthy = self._run(self._tests, _CPU_S, _WALL_S)
            if healthy.killer:
                raise SystemExit(f"{healthy.killer} fails without a mutant")
            self._limit_s = _LEAST_S + int(_TIMES * healthy.seconds)
        return self._limit_s

    def _run(self, tests: Sequence[str], cpu_s: int, wall_s: float) -> Outcome:
        return trial.tried(
            self._tree.root,
            tests,
            cpu_s=cpu_s,
            wall_s=wall_s,
            kept=self._kept,
        )


def _is_equal(reasons: dict[str, str], change: Change) -> bool:
    return reasons.get(change.place, "").startswith("equivalent")


if __name__ == "__main__":
    sys.exit(main())
