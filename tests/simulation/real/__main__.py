"""`make simulate REAL=1`: seeds on the simulation and on real servers, for so long.

Each seed has four parts: acts at a PostgreSQL, of a producer, of transactional ones,
and a course of the whole program; PostgreSQL is 15 and 18 by turns. A journal keeps
each seed that was the same, and on which state of the code; the first difference ends
the run.
"""

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Final

from tests.simulation.__main__ import Journal
from tests.simulation.real import seeds
from tests.simulation.real.servers import Broker, broker, postgres
from tests.simulation.world import Violation
from walstream.testing.servers import LocalPostgres

_JOURNAL: Final = Path(".simulated-real")
_VERSIONS: Final = (15, 18)


def main() -> int:
    """Compare seed after seed; give the exit code."""
    parser = argparse.ArgumentParser(prog="make simulate REAL=1", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--seed", type=int, help="where to begin, instead of resuming")
    given = parser.parse_args()
    journal = Journal(_JOURNAL)
    first = journal.next if given.seed is None else given.seed
    compared: Counter[str] = Counter()
    with _servers() as (kafka, servers):
        deadline = time.monotonic() + given.seconds
        for seed in count(first):
            same = _compare(kafka, servers[seed % len(servers)], seed, compared)
            failed = None if same else seed
            journal.add(first=seed, schedules=int(same), failed=failed)
            if not same or time.monotonic() > deadline:
                break
    told = ", ".join(f"{number} of {part}" for part, number in compared.items())
    print(f"the same from seed {first} on: {told}")
    print(f"{journal.total} seeds in all, {journal.of_this_code} of this code")
    return 0 if same else 1


@contextmanager
def _servers() -> Iterator[tuple[Broker, list[LocalPostgres]]]:
    with ExitStack() as stack:
        kafka = stack.enter_context(broker())
        kafka.deny()
        yield kafka, [stack.enter_context(postgres(one)) for one in _VERSIONS]


def _compare(
    kafka: Broker, server: LocalPostgres, seed: int, compared: Counter[str]
) -> bool:
    """Count the parts of a seed that are the same; say which is not."""
    parts: dict[str, Callable[[], object]] = {
        f"PostgreSQL {server.version}": lambda: seeds.acts(server, seed),
        "Kafka": lambda: seeds.producing(kafka, seed),
        "Kafka's transactions": lambda: seeds.transactions(kafka, seed),
        "whole program": lambda: seeds.course(server, kafka, seed),
    }
    for part, compare in parts.items():
        try:
            compare()
        except (AssertionError, Violation) as error:  # or something never comes
            print(f"seed {seed}, {part}: {error}", file=sys.stderr)
            print(f"again: make simulate REAL=1 SEED={seed}", file=sys.stderr)
            return False
        compared[part] += 1
    print(f"seed {seed}: the same", flush=True)
    return True


if __name__ == "__main__":
    sys.exit(main())
