"""`make museum`: each old bug, brought back alone, and the test that notices it."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tests.museum import trial
from tests.museum.journal import Journal, digest
from tests.museum.mutant import Mutant, mutants
from tests.museum.tree import ROOT, Tree, say

JOURNAL: Final = ".museum-journal"
_CPU_S: Final = 240
_WALL_S: Final = 600.0


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make museum", description=__doc__)
    parser.add_argument("--name", default="", help="only mutants with this in the name")
    parser.add_argument("--again", action="store_true", help="forget earlier verdicts")
    options = parser.parse_args(arguments)
    chosen = [mutant for mutant in mutants() if options.name in mutant.name]
    if options.again:
        (ROOT / JOURNAL).unlink(missing_ok=True)
    trial.load()
    with Tree.copied() as tree:
        alive = survivors(tree, chosen, Journal(ROOT / JOURNAL))
    say(f"{len(chosen)} mutants, {len(chosen) - len(alive)} killed")
    for mutant in alive:
        say(f"survives: {mutant.name} ({mutant.origin})")
    return 1 if alive else 0


def survivors(tree: Tree, chosen: Sequence[Mutant], journal: Journal) -> list[Mutant]:
    """Try each mutant, and print what killed it; return those that live on."""
    alive = []
    healthy: set[tuple[str, ...]] = set()
    for mutant in chosen:
        text = mutant.text(tree.root)
        about = digest(text, *(_read(tree.root, test) for test in mutant.tests))
        outcome = journal.known(mutant.name, about)
        if outcome is None:
            if mutant.tests not in healthy:
                _check_healthy(tree, mutant.tests)
                healthy.add(mutant.tests)
            with tree.broken(mutant.path, text):
                outcome = trial.tried(
                    tree.root, mutant.tests, cpu_s=_CPU_S, wall_s=_WALL_S
                )
            journal.keep(mutant.name, about, outcome)
        verdict = f"killed by {outcome.killer}" if outcome.killer else "SURVIVES"
        say(f"{mutant.name}: {verdict}, {outcome.seconds} s")
        if not outcome.killer:
            alive.append(mutant)
    return alive


def _check_healthy(tree: Tree, tests: Sequence[str]) -> None:
    """Raise where tests fail without any mutant: they would kill each."""
    outcome = trial.tried(tree.root, tests, cpu_s=_CPU_S, wall_s=_WALL_S)
    if outcome.killer:
        raise SystemExit(f"{outcome.killer} fails without a mutant")


def _read(root: Path, test: str) -> str:
    return (root / test.partition("::")[0]).read_text("utf-8")


if __name__ == "__main__":
    sys.exit(main())
