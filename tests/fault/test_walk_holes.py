"""The walk finds a hole of each kind that it is for: a mend that is taken out again.

Of fixed seeds, within a bound; after how many steps is printed.
"""

import os
import sys
import time
from itertools import count
from pathlib import Path
from typing import Final

import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer
from tests.support.walk.patch import HOLES
from tests.support.walk.runner import WalkFailed
from tests.support.walk.walk import Budget, walk

pytestmark = [pytest.mark.fault, pytest.mark.fault_long, pytest.mark.takes(1800)]

_STEPS: Final = int(os.environ.get("WALSTREAM_TEST_WALK_STEPS") or 2000)


@pytest.mark.parametrize("hole", HOLES)
def test_a_mend_that_is_taken_out_is_missed(
    postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path, hole: str
) -> None:
    began, steps = time.monotonic(), 0
    for number in count(1):
        seed = f"hole-{number}"
        budget = Budget(float("inf"), _STEPS - steps, hole=hole)
        try:
            steps += walk(
                postgres, kafka, tmp_path / seed, seed=seed, budget=budget, counters={}
            )
        except WalkFailed as failed:
            if failed.what not in {"silence", "order", "unseen"}:
                raise
            steps += failed.steps
            print(  # noqa: T201 - how soon is to be seen
                f"PostgreSQL {postgres.version} without {hole!r}: {failed.what} after"
                f" {steps} steps and {time.monotonic() - began:.0f} s, seed {seed}",
                file=sys.stderr,
            )
            return
        assert steps < _STEPS, f"not within {steps} steps"
