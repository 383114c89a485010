"""A random walk over what people do to a database loses and doubles no row in silence.

Rows are written in interleaved transactions, while tables, identities, partitions,
publications and rights change and walstream is stopped, killed and started. The topics
folded by key are the tables, or walstream has stopped and named what is concerned: then
its own cure is done, and the walk goes on. `tests/support/walk` says how.

A walk that fails prints its seed and the acts that are left when all others are taken
away. In the environment, each behind WALSTREAM_TEST_WALK_: SEED repeats it, SECONDS and
STEPS say how long it goes, SHRINK for how many seconds a failure is made shorter,
WITHOUT which kinds of changes are left out, and REREAD=1 that on_publication_change is
"reread".
"""

import os
import secrets
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer
from tests.support.walk.walk import Budget, walk

pytestmark = pytest.mark.fault

_SHORT_S: Final = 15.0  # on each server
_LONG_S: Final = 1800.0
_SHRINK_S: Final = 300.0


@pytest.mark.same_on_15
@pytest.mark.takes(25)
def test_no_row_is_lost_or_doubled_in_silence(
    postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    """Of seeds that are the same in each run: the long walk tries new ones."""
    _walk(postgres, kafka, tmp_path, _SHORT_S, map("short-{}".format, count(1)))


@pytest.mark.fault_long
@pytest.mark.takes(2400)
def test_no_row_is_lost_or_doubled_in_silence_for_long(
    postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    _walk(postgres, kafka, tmp_path, _LONG_S, iter(lambda: secrets.token_hex(4), ""))


def _walk(
    server: PostgresServer,
    kafka: KafkaServer,
    folder: Path,
    seconds: float,
    seeds: Iterator[str],
) -> None:
    """Walk one database after the other until the time or the steps are over."""
    seed = _told("SEED", "")
    without = frozenset(_told("WITHOUT", "").split(","))
    began = time.monotonic()
    until = began + float(_told("SECONDS", str(seconds)))
    left = int(_told("STEPS", str(10**9)))
    shrink_s = float(_told("SHRINK", str(_SHRINK_S)))
    done: dict[str, int] = {}
    steps = 0
    while left > steps and (time.monotonic() < until or not steps):
        one = seed or next(seeds)
        print(f"PostgreSQL {server.version}: seed {one}", file=sys.stderr)  # noqa: T201
        budget = Budget(
            float("inf") if seed else until,
            left - steps,
            shrink_s,
            without,
            reread=bool(_told("REREAD", "")),
        )
        walked = walk(
            server, kafka, folder / one, seed=one, budget=budget, counters=done
        )
        steps += walked
        print(f"PostgreSQL {server.version}: {one}: {walked} steps", file=sys.stderr)  # noqa: T201
        if seed:
            break
    spent = time.monotonic() - began
    print(  # noqa: T201 - what a walk has done is to be seen
        f"PostgreSQL {server.version}: {steps} steps in {spent:.0f} s, {done}",
        file=sys.stderr,
    )
    assert done.get("checks", 0) > 0


def _told(name: str, default: str) -> str:
    return os.environ.get(f"WALSTREAM_TEST_WALK_{name}") or default
