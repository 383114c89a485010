"""Killed at random moments under load, walstream loses nothing and shuffles nothing."""

import os
import random
import signal
import time
from collections.abc import Iterator

import psutil
import pytest

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import (
    OracleSlot,
    assert_rewind_and_continue,
    foreign,
    missing,
)

pytestmark = pytest.mark.same_on_15

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_CYCLES_SHORT = 2
_KILL_CYCLES_LONG = 50
_TERM_CYCLES_LONG = 20


@pytest.fixture
def stream(
    postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stream]:
    with streamed(
        postgres,
        kafka,
        tmp_path_factory.mktemp("kill"),
        before=TABLE,
        sink={"topic_partitions": 4},
    ) as made:
        yield made


def test_sigkill_at_random_moments_loses_nothing(stream: Stream) -> None:
    kill_cycles(stream, _CYCLES_SHORT)


@pytest.mark.fault_long
@pytest.mark.takes(600)
def test_fifty_sigkills_lose_nothing(stream: Stream) -> None:
    kill_cycles(stream, _KILL_CYCLES_LONG)


def test_sigterm_repeats_nothing(stream: Stream) -> None:
    term_cycles(stream, _CYCLES_SHORT)


@pytest.mark.fault_long
@pytest.mark.takes(300)
def test_twenty_sigterms_repeat_nothing(stream: Stream) -> None:
    term_cycles(stream, _TERM_CYCLES_LONG)


def kill_cycles(stream: Stream, cycles: int) -> None:
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    walstream = stream.walstream
    oracle = OracleSlot(stream.database)
    with Load(stream.database.dsn, _SEED) as load:
        for cycle in range(cycles):
            time.sleep(choose.uniform(0.0, 1.5))
            if cycle % 2:
                kill_worker(walstream.worker_pid())
            else:
                pid = walstream.pid
                assert psutil.pid_exists(pid)
                walstream.kill()
                assert not psutil.pid_exists(pid)
                walstream.start()
                if choose.random() < 0.7:
                    walstream.streaming()
            load.wait_for_more(5)
        walstream.worker_pid()
    assert settle(stream, oracle) == 0


def kill_worker(pid: int) -> None:
    """SIGKILL a live worker, and see it gone."""
    process = psutil.Process(pid)
    created = process.create_time()
    os.kill(pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs([process], timeout=30)
    assert gone, (pid, created, alive)


def term_cycles(stream: Stream, cycles: int) -> None:
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    walstream = stream.walstream
    oracle = OracleSlot(stream.database)
    with Load(stream.database.dsn, _SEED) as load:
        for _ in range(cycles):
            time.sleep(choose.uniform(0.1, 1.5))
            assert walstream.running
            assert walstream.terminate() == 0, walstream.text
            assert walstream.said("drained"), walstream.text
            walstream.start().streaming()
            load.wait_for_more(5)
    repeats = settle(stream, oracle)
    assert repeats == 0


def settle(stream: Stream, oracle: OracleSlot) -> int:
    """Wait for all that was committed; claim order; give the number of repeats."""
    expected = oracle.names()
    assert len(expected) > 100
    stream.reader.until(
        lambda records: not missing(expected[-1:], records), 180, "the last op arrives"
    )
    assert stream.walstream.terminate() == 0
    records = stream.reader.read()
    assert missing(expected, records) == []
    assert foreign(expected, records) == []
    return assert_rewind_and_continue(records)
