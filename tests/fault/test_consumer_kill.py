"""A consumer killed or frozen at any step: each op takes effect exactly once."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.deadline import wait_until
from tests.support.loads.op_record import Feed
from tests.support.programs.consumer_thread import Setting

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_STEPS = ("fetched", "handler ran", "before commit", "committed", "offset stored")
_CYCLES_SHORT = 3
_CYCLES_LONG = 50
_SESSION_MS = 6000  # the least that a broker takes


@contextmanager
def child(setting: Setting, **given: Any) -> Iterator[subprocess.Popen[str]]:
    """Run a consumer; static membership spares the wait for a dead member."""
    kafka = {
        "bootstrap.servers": setting.kafka.bootstrap,
        "session.timeout.ms": _SESSION_MS,
        "auto.commit.interval.ms": 50,
        "fetch.wait.max.ms": 10,
    } | given.pop("kafka", {"group.instance.id": "one"})
    given |= {
        "dsn": setting.database.dsn,
        "group": setting.group,
        "topic": setting.topic,
        "kafka": kafka,
    }
    with subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.support.programs.consumer_child",
            json.dumps(given),
        ],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def killed(setting: Setting, feed: Feed, step: str, times: int, **given: bool) -> None:
    """Feed, and run a consumer until it dies at a step."""
    for _ in range(60):
        number = setting.sent
        feed.insert(number, number % 2)
        setting.sent += 1
    feed.flush()
    with child(setting, die=[step, times], **given) as process:
        assert process.wait(60) == -signal.SIGKILL, step


def settled(setting: Setting, feed: Feed, **given: bool) -> None:
    """Run to the end; claim that each op was applied once, in order."""
    feed.insert(setting.sent)
    feed.flush()
    setting.sent += 1
    with child(setting, **given) as process:
        setting.until(setting.sent)
        process.terminate()
        assert process.wait(60) == 0
    assert setting.database.fetch(
        "SELECT count(*), count(DISTINCT (lsn, seq_id)) FROM applied"
    ) == [(setting.sent, setting.sent)]
    assert setting.database.fetch("SELECT id FROM item ORDER BY id") == [
        (number,) for number in range(setting.sent)
    ]


@pytest.mark.same_on_15
def test_sigkill_at_every_step_applies_each_op_once(on_both: Setting) -> None:
    feed = on_both.make(partitions=2)
    for times, step in enumerate(_STEPS, 2):
        killed(on_both, feed, step, times if step != "offset stored" else 3)
    settled(on_both, feed)


def test_sigkill_at_random_steps_applies_each_op_once(setting: Setting) -> None:
    kill_cycles(setting, _CYCLES_SHORT)


def test_sigkill_around_batches_applies_each_op_once(setting: Setting) -> None:
    feed = setting.make(partitions=2)
    for step in _STEPS:
        times = 3 if step == "offset stored" else 2
        killed(setting, feed, step, times, batches=True)
    settled(setting, feed, batches=True)


def test_sigkill_in_a_pipeline_applies_each_op_once(setting: Setting) -> None:
    feed = setting.make(partitions=2)
    for times, step in enumerate(_STEPS, 2):
        most = {"handler ran": 15, "offset stored": 3}.get(step, times)
        killed(setting, feed, step, most, pipeline=True)
    settled(setting, feed, pipeline=True)


@pytest.mark.fault_long
@pytest.mark.takes(600)
def test_fifty_sigkills_apply_each_op_once(on_both: Setting) -> None:
    kill_cycles(on_both, _CYCLES_LONG)


def kill_cycles(setting: Setting, cycles: int) -> None:
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    feed = setting.make(partitions=2)
    for _ in range(cycles):
        step = choose.choice(_STEPS)
        most = 50 if step == "handler ran" else 2
        killed(setting, feed, step, choose.randint(1, most))
    settled(setting, feed)


@pytest.mark.parametrize("pipeline", [False, True])
def test_a_frozen_member_takes_no_effect_when_it_goes_on(
    setting: Setting, tmp_path: Path, *, pipeline: bool
) -> None:
    """GIVEN a member frozen in a transaction of one partition, and about to try an op
    of another again, WHEN it is taken for dead and its partner handles them, and it
    goes on, THEN each op took effect once.
    """  # noqa: D205 - a sentence
    feed = setting.make(partitions=2)
    for number in range(20):
        feed.insert(number, number % 2)
    feed.flush()
    hold = tmp_path / "hold"
    hold.touch()
    order = {"hold": str(hold), "kafka": {}, "batch": 5, "pipeline": pipeline}
    with child(setting, **order) as frozen:
        assert frozen.stdout is not None
        said = {frozen.stdout.readline() for _ in range(3)}
        assert said == {"starts\n", "holds\n", "retries\n"}
        frozen.send_signal(signal.SIGSTOP)
        with setting.running(kafka={"session.timeout.ms": _SESSION_MS}):
            setting.until(20)
            hold.unlink()
            frozen.send_signal(signal.SIGCONT)
            feed.insert(20, 0)
            feed.insert(21, 1)
            feed.flush()
            setting.until(22)
            wait_until(
                lambda: (
                    not setting.database.fetch(
                        "SELECT FROM pg_stat_activity WHERE state LIKE 'idle in tr%%'"
                        " AND datname = current_database()"
                    )
                ),
                20,
                "no transaction is left open",
            )
        frozen.terminate()
        assert frozen.wait(60) == 0
    assert setting.count() == 22
    assert setting.database.fetch(
        "SELECT count(DISTINCT (lsn, seq_id)) FROM applied"
    ) == [(22,)]
