"""Several instances of a consumer: they join, leave and meet at barriers."""

import os
import random
import time
from contextlib import ExitStack

import pytest

from tests.support.deadline import wait_until
from tests.support.loads.op_record import truncate
from tests.support.programs.consumer_thread import Setting

pytestmark = pytest.mark.same_on_15

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_PARTITIONS = 4
# A member that leaves while it joins stays in the group until this is over.
_SESSION = {"session.timeout.ms": 6000}


def test_instances_that_join_and_leave_apply_each_op_once(setting: Setting) -> None:
    joins(setting, 4)


@pytest.mark.fault_long
@pytest.mark.takes(600)
def test_instances_that_join_and_leave_for_long(setting: Setting) -> None:
    joins(setting, 60)


def joins(setting: Setting, changes: int) -> None:
    """Two instances, then three, one of them leaving or joining, under load."""
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    feed = setting.make(_PARTITIONS)
    running: list[ExitStack] = []
    with ExitStack() as all_of_them:
        for _ in range(changes):
            if len(running) < 2 or (len(running) < 3 and choose.random() < 0.5):
                one = all_of_them.enter_context(ExitStack())
                batch = choose.choice((1, 7, 100))
                one.enter_context(setting.running(batch=batch, kafka=_SESSION))
                running.append(one)
            else:
                running.pop(choose.randrange(len(running))).close()
            deadline = time.monotonic() + choose.uniform(0.1, 1.0)
            while time.monotonic() < deadline:
                for _ in range(10):
                    feed.insert(setting.sent, choose.randrange(_PARTITIONS))
                    setting.sent += 1
                feed.flush()
        feed.flush()
        if not running:
            all_of_them.enter_context(setting.running(kafka=_SESSION))
        wait_until(
            lambda: setting.failed() or setting.count() >= setting.sent, 300, "all came"
        )
    assert setting.database.fetch(
        "SELECT count(*), count(DISTINCT (lsn, seq_id)) FROM applied"
    ) == [(setting.sent, setting.sent)]
    assert (
        setting.database.fetch(
            "SELECT FROM (SELECT lsn < lag(lsn) OVER (PARTITION BY partition"
            " ORDER BY at) AS shuffled FROM applied) AS found WHERE shuffled"
        )
        == []
    )


def test_rows_after_a_truncate_stay_and_rows_before_it_go(on_both: Setting) -> None:
    truncates(on_both, 4)


@pytest.mark.fault_long
@pytest.mark.takes(300)
def test_fifty_truncates_under_load(on_both: Setting) -> None:
    truncates(on_both, 50)


def truncates(setting: Setting, rounds: int) -> None:
    """Four partitions, two instances, TRUNCATE in the middle of inserts."""
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    choose = random.Random(_SEED)  # noqa: S311 - a test's choices
    feed = setting.make(_PARTITIONS)
    with setting.running(batch=choose.choice((1, 10, 200))), setting.running():
        for _ in range(rounds):
            for _ in range(choose.randint(0, 300)):
                feed.insert(setting.sent, choose.randrange(_PARTITIONS))
                setting.sent += 1
            lsn = feed.next_lsn()
            for partition in choose.sample(range(_PARTITIONS), _PARTITIONS):
                feed.send(truncate(lsn, _PARTITIONS), partition)
                if choose.random() < 0.5:
                    feed.flush()
            later = range(setting.sent, setting.sent + choose.randint(1, 200))
            for number in later:
                feed.insert(number, choose.randrange(_PARTITIONS))
            setting.sent = later.stop
            feed.flush()
            _until_rows(setting, later)


def _until_rows(setting: Setting, wanted: range) -> None:
    def are_there() -> bool:
        found = setting.database.fetch("SELECT id FROM item ORDER BY id")
        return setting.failed() or found == [(number,) for number in wanted]

    wait_until(are_there, 30, f"exactly the rows {wanted} are there")
