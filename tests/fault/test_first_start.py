"""A first start that is killed at any moment needs no operator at the next one."""

import random
import shutil
import time
from collections.abc import Callable

import psutil
import pytest

from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.op_order import distinct
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import Walstream

_RANDOM_KILLS = 30


def _publication(database: Database, _: Walstream) -> bool:
    return bool(database.fetch("SELECT 1 FROM pg_publication"))


def _slot(database: Database, walstream: Walstream) -> bool:
    return bool(
        database.fetch(
            "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", walstream.slot
        )
    )


def _state(_: Database, walstream: Walstream) -> bool:
    return (walstream.state / "data.mdb").exists()


@pytest.mark.same_on_15
@pytest.mark.parametrize("moment", [_state, _publication, _slot])
def test_killed_at_a_step_of_the_first_start_the_next_one_streams(
    database: Database,
    runs: Runs,
    reader: Reader,
    moment: Callable[[Database, Walstream], bool],
) -> None:
    database.execute("CREATE TABLE t (id serial PRIMARY KEY)")
    walstream = runs(database.dsn).start()
    deadline = time.monotonic() + 60
    while not moment(database, walstream):
        assert time.monotonic() < deadline, walstream.text
    kill(walstream)
    continues(database, walstream, reader, rows=1)


@pytest.mark.fault_long
@pytest.mark.takes(300)
def test_killed_at_random_moments_of_the_first_start_the_next_one_streams(
    database: Database, runs: Runs, reader: Reader
) -> None:
    choose = random.Random(18)  # noqa: S311 - a test's moments
    database.execute("CREATE TABLE t (id serial PRIMARY KEY)")
    walstream = runs(database.dsn)
    for cycle in range(_RANDOM_KILLS):
        walstream.start()
        time.sleep(choose.uniform(0.3, 1.2))
        kill(walstream)
        continues(database, walstream, reader, rows=cycle + 1)
        forget(database, walstream)


def kill(walstream: Walstream) -> None:
    """SIGKILL everything, and see that it ran until then."""
    pid = walstream.pid
    assert psutil.pid_exists(pid)
    walstream.kill()
    assert not psutil.pid_exists(pid)


def continues(
    database: Database, walstream: Walstream, reader: Reader, *, rows: int
) -> None:
    """Start without any consent, and see a row arrive."""
    walstream.start().streaming()
    database.execute("INSERT INTO t DEFAULT VALUES")
    reader.until(lambda records: distinct(rows, records))
    assert walstream.terminate() == 0


def forget(database: Database, walstream: Walstream) -> None:
    """Make the next start a first one again."""
    database.fetch("SELECT pg_drop_replication_slot(%s)", walstream.slot)
    for name in ("walstream", "walstream_insert"):
        database.execute(f"DROP PUBLICATION {name}")
    shutil.rmtree(walstream.folder / "state")
