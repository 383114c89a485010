"""One run of a scenario, with or without a strike: what was seen, what was violated."""

import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.callsites.scenario import Scenario, Servers, own_group, staged
from tests.callsites.shim import Order, Tap
from tests.support.project.own_coverage import ROOT

FAILURES = ROOT / "build" / "callsites" / "failures"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one run."""

    struck: bool
    seen: int  # calls of the site, where one was to be struck
    counts: Mapping[str, int]  # calls of each site
    violation: str  # "": all held
    seconds: float
    folder: str  # what a violation left


def run(
    servers: Servers, kind: type[Scenario], version: int, order: Order | None = None
) -> Outcome:
    """Act and settle; a violation keeps its folder."""
    began = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="walstream-callsites-"))
    tap = Tap(folder / "tap", own_group(), order)
    violation = kept = ""
    try:
        with staged(servers, version, folder / "run", tap) as scene:
            scenario = kind(scene)
            try:
                scenario.act()
                if order is None or tap.done:
                    tap.disarm()
                    scenario.settle()
            except AssertionError as error:
                violation = str(error).partition("\n")[0] or repr(error)
                kept = _keep(folder)
        return Outcome(
            tap.done,
            tap.seen,
            tap.counts(),
            violation,
            round(time.monotonic() - began, 1),
            kept,
        )
    finally:
        tap.close()
        shutil.rmtree(folder, ignore_errors=True)


def _keep(folder: Path) -> str:
    FAILURES.mkdir(parents=True, exist_ok=True)
    kept = FAILURES / folder.name.removeprefix("walstream-callsites-")
    shutil.copytree(folder, kept, ignore=shutil.ignore_patterns("*.sock"))
    return str(kept.relative_to(ROOT))
