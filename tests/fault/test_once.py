"""Killed in any way, walstream sends no record twice, and leaves none out."""

import os
import random
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.fault.test_kill_cycles import kill_worker, settle
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import Database, OwnPostgres, PostgresServer
from tests.support.fixtures.walstream import Runs, Stream, streamed
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import OracleSlot
from tests.support.oracles.topic_reader import Reader
from walstream.lsn import parse

pytestmark = pytest.mark.same_on_15

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_CYCLES = int(os.environ.get("WALSTREAM_TEST_KILLS") or 200)


@pytest.fixture(params=["idempotent", "transactional"])
def stream(
    request: pytest.FixtureRequest,
    postgres: PostgresServer,
    kafka: KafkaServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stream]:
    with streamed(
        postgres,
        kafka,
        tmp_path_factory.mktemp("once"),
        before=TABLE,
        sink={"topic_partitions": 8, "delivery": request.param},
    ) as made:
        yield made


def test_kills_and_a_lost_state_repeat_nothing(stream: Stream) -> None:
    kills(stream, 3, lost_every=2)


@pytest.mark.fault_long
@pytest.mark.takes(1800)
def test_many_kills_repeat_nothing(stream: Stream) -> None:
    kills(stream, _CYCLES, lost_every=10)


def kills(stream: Stream, cycles: int, lost_every: int) -> None:
    """Kill it again and again, now and then with its state; see each record once."""
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    walstream = stream.walstream
    oracle = OracleSlot(stream.database)
    with Load(stream.database.dsn, _SEED) as load:
        for cycle in range(1, cycles + 1):
            time.sleep(choose.uniform(0.0, 1.0))
            if cycle % lost_every == 0:
                walstream.streaming()
                load.wait_for_more(5)
                walstream.kill()
                shutil.rmtree(walstream.state)
                walstream.start("--adopt-slot").streaming()
            elif cycle % 2:
                kill_worker(walstream.worker_pid())
            else:
                pid = walstream.pid
                walstream.kill()
                assert not psutil.pid_exists(pid)
                walstream.start()
            load.wait_for_more(5)
        walstream.worker_pid()
    assert settle(stream, oracle) == 0


@pytest.mark.parametrize("delivery", ["idempotent", "transactional"])
def test_a_broker_that_is_killed_causes_no_repeats(
    delivery: str,
    newest_postgres: PostgresServer,
    own_kafka: OwnKafka,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    broker = own_kafka()
    folder = tmp_path_factory.mktemp("broker")
    sink = {"topic_partitions": 4, "delivery": delivery}
    with streamed(newest_postgres, broker, folder, before=TABLE, sink=sink) as stream:
        oracle = OracleSlot(stream.database)
        with Load(stream.database.dsn, _SEED) as load:
            for _ in range(2):
                load.wait_for_more(20)
                broker.kill()
                kill_worker(stream.walstream.worker_pid())
                broker.start()
                load.wait_for_more(20)
        assert settle(stream, oracle) == 0


@pytest.mark.parametrize(
    ("version", "delivery"),
    [(15, "idempotent"), (18, "idempotent"), (18, "transactional")],
)
def test_a_machine_that_was_set_back_loses_nothing(
    version: int, delivery: str, own_postgres: OwnPostgres, runs: Runs, reader: Reader
) -> None:
    """Server and state folder of before are back, and Kafka has what came since.

    The server then writes other rows under the same LSNs.
    """
    server = own_postgres(version)
    database = Database(server)
    database.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
    sink = {"topic_partitions": 2, "delivery": delivery}
    walstream = runs(server.dsn(), sink=sink)
    with walstream:
        database.execute("INSERT INTO t VALUES (0, 'before')")
        reader.count(1)
        walstream.kill()  # after a clean stop nothing is looked for
    server.stop("fast")
    copy = walstream.folder / "copy"
    copy.mkdir()
    _copy(server.data, copy / "data")
    _copy(walstream.state, copy / "state")
    server.start()
    with walstream:
        walstream.streaming()
        _insert(database, range(1, 201), "lost")
        highest = max(record.name for record in reader.count(201))
        walstream.kill()
    server.stop("fast")
    for place, kept in ((server.data, "data"), (walstream.state, "state")):
        shutil.rmtree(place)
        _copy(copy / kept, place)
    server.start()
    wanted = 0
    while wanted < 50 or _end(database) <= highest[0]:
        wanted += 50
        _insert(database, range(wanted - 49, wanted + 1), "kept")
    with walstream:
        reader.until(
            lambda records: (
                len({one.new["id"] for one in records if one.new["v"] == "kept"})
                == wanted
            ),
            60,
            "all rows of the server as it is now",
        )
        wait_until(lambda: walstream.said("stream begins again"), 10, "it says why")
        assert "is not of this server's history" in walstream.text
        assert walstream.terminate() == 0


def _copy(of: Path, to: Path) -> None:
    """Copy a folder with its owners, as a backup has them."""
    subprocess.run(["cp", "-a", of, to], check=True)


def _insert(database: Database, ids: range, text: str) -> None:
    """Insert rows, each in a transaction of its own."""
    for number in ids:
        database.execute(f"INSERT INTO t VALUES ({number}, '{text}')")  # noqa: S608 - a test's own


def _end(database: Database) -> int:
    ((lsn,),) = database.fetch("SELECT pg_current_wal_lsn()::text")
    return parse(str(lsn))
