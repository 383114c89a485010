"""`make callsites`: strikes at each call that changes state, as many as there is time.

What was made is kept in a journal, with which the next run goes on.
"""

import argparse
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final
from zlib import crc32

from tests.callsites import trial
from tests.callsites.journal import ABSENT, HELD, VIOLATED, Entry, Journal
from tests.callsites.plan import Strike, strikes
from tests.callsites.scenario import OwnServers, Scenario, Servers
from tests.callsites.scenarios import SCENARIOS
from tests.support.programs import fork
from tests.support.project.own_coverage import ROOT
from tests.support.project.shard import code_state

JOURNAL: Final = Path(".callsites-journal")
_TRIES: Final = 3


def main(arguments: Sequence[str] | None = None) -> int:
    """Make strikes; give the exit code."""
    parser = argparse.ArgumentParser(prog="make callsites", description=__doc__)
    parser.add_argument("--seconds", type=float, default=600.0)
    parser.add_argument("--scenario", default="", choices=["", *SCENARIOS])
    parser.add_argument("--version", type=int, help="of PostgreSQL; both")
    parser.add_argument("--name", default="", help="only strikes with this in the name")
    parser.add_argument("--seed", type=int, default=1, help="of their order")
    parser.add_argument("--again", action="store_true", help="also those that held")
    given = parser.parse_args(arguments)
    journal = Journal(ROOT / JOURNAL, code_state(ROOT))
    until = time.monotonic() + given.seconds
    found = 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # what it started ends, too
    fork.SHARED.wanted = True  # most of a start's time are imports
    try:
        with OwnServers(fork=True) as servers:
            for kind, version in _chosen(given.scenario, given.version):
                bench = Bench(servers, kind, version, journal)
                wanted = [
                    strike
                    for strike in strikes(bench.sites(), given.seed)
                    if given.name in strike.name
                    and (given.again or not bench.held(strike))
                ]
                found += bench.make(wanted, until)
    finally:
        fork.SHARED.close()
    for line in journal.summary():
        say(line)
    return 1 if found else 0


def _chosen(scenario: str, version: int | None) -> list[tuple[type[Scenario], int]]:
    return [
        (kind, one)
        for name, kind in SCENARIOS.items()
        if scenario in {"", name}
        for one in kind.versions
        if version in {None, one}
    ]


class Bench:
    """The strikes of one scenario on one version."""

    def __init__(
        self, servers: Servers, kind: type[Scenario], version: int, journal: Journal
    ) -> None:
        self._servers = servers
        self._kind = kind
        self._version = version
        self._journal = journal

    def sites(self) -> Mapping[str, int]:
        """Return how often each site is called, of a run where nothing is struck."""
        name = self._kind.name
        known = self._journal.sites(name, self._version)
        if known is None:
            seen = trial.run(self._servers, self._kind, self._version)
            if seen.violation:
                raise SystemExit(f"{name} fails unstruck: {seen.violation}")
            known = seen.counts
            self._journal.keep_sites(name, self._version, known)
            say(f"{name} on {self._version}: {len(known)} sites, {seen.seconds} s")
        return known

    def held(self, strike: Strike) -> bool:
        return self._journal.held(self._kind.name, self._version, strike.name)

    def make(self, wanted: Sequence[Strike], until: float) -> int:
        """Make strikes, while there is time; return how many found a violation."""
        counts, found = self.sites(), 0
        for strike in wanted:
            if time.monotonic() > until:
                break
            entry = self._made(strike, counts[strike.site])
            self._journal.keep(entry)
            found += entry.outcome == VIOLATED
            say(
                f"{entry.scenario} {entry.version} {strike.name}:"
                f" {entry.outcome} {entry.said} {entry.seconds} s"
            )
        return found

    def _made(self, strike: Strike, count: int) -> Entry:
        """Strike; where a run has fewer such calls than the one before, its last."""
        # the process alone, or the whole instance
        group = bool(crc32(strike.name.encode()) & 1)
        began, outcome = time.monotonic(), ABSENT
        said = ""
        for _ in range(_TRIES):
            order = strike.order(count, group=group)
            seen = trial.run(self._servers, self._kind, self._version, order)
            if seen.violation:
                outcome, said = VIOLATED, f"{seen.violation}, {seen.folder}"
                break
            if seen.struck:
                outcome = HELD
                break
            count = seen.seen or count
        return Entry(
            self._kind.name,
            self._version,
            strike.name,
            strike.kills,
            outcome,
            said,
            round(time.monotonic() - began, 1),
            self._journal.code,
        )


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
