"""PostgreSQL goes away, comes back, or wants to stop: walstream is never in its way."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psutil
import psycopg
import pytest

from tests.support.deadline import wait_until, within
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import Database, OwnPostgres, PostgresServer
from tests.support.fixtures.walstream import Runs, Stream, streamed
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import (
    OracleSlot,
    assert_rewind_and_continue,
    distinct,
    missing,
    more_than,
)
from tests.support.oracles.topic_reader import Reader
from walstream.lsn import parse
from walstream.testing.servers import LocalPostgres
from walstream.testing.servers.postgres import StopMode

_WAITED_FOR_S = 40.0  # by a server; one that is silent is cut off after 60
_SOON_S = 5.0  # with a busy machine; of itself walstream tells each ten
_LONG = pytest.mark.fault_long
_VERSIONS = pytest.mark.parametrize("version", [15, 18])
_WAYS = pytest.mark.parametrize(
    ("version", "mode"),
    [
        pytest.param(15, "fast", marks=_LONG),
        pytest.param(15, "smart", marks=_LONG),
        pytest.param(18, "fast", marks=_LONG),
        (18, "smart"),
    ],
)


@pytest.fixture
def stream(
    postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> Iterator[Stream]:
    with streamed(postgres, kafka, tmp_path, before=TABLE) as made:
        yield made


@pytest.mark.same_on_15
@_VERSIONS
def test_a_crash_of_postgresql_is_survived(
    version: int, own_postgres: OwnPostgres, runs: Runs, reader: Reader
) -> None:
    server = own_postgres(version)
    database = Database(server)
    database.execute(TABLE)
    with runs(server.dsn(), sink={"topic_partitions": 4}):
        oracle = OracleSlot(database)
        with Load(server.dsn(), seed=version) as load:
            for _ in range(3):
                load.wait_for_more(20)
                stop_and_start(server, "immediate")
                seen = len(reader.read())
                load.wait_for_more(1)
                reader.until(partial(more_than, seen))
        expected = oracle.names()
        reader.until(lambda records: not missing(expected, records), 30)
        assert_rewind_and_continue(reader.records)


def stop_and_start(server: LocalPostgres, mode: StopMode) -> None:
    """Stop in this mode, see the server gone, start it again."""
    pid = server.pid
    server.stop(mode)
    assert not psutil.pid_exists(pid)
    server.start()


@_WAYS
def test_a_shutdown_ends_while_kafka_is_down(
    version: int,
    mode: StopMode,
    own_postgres: OwnPostgres,
    own_kafka: OwnKafka,
    runs: Runs,
) -> None:
    server, broker = own_postgres(version), own_kafka()
    database = Database(server)
    database.execute("CREATE TABLE t (id serial PRIMARY KEY, v text)")
    with runs(
        server.dsn(),
        bootstrap=broker.bootstrap,
        sink={"producer": producer(broker.bootstrap, 100)},
    ) as walstream:
        broker.kill()
        assert not broker.running
        # more than the queue takes: reading pauses
        database.execute(
            "INSERT INTO t (v) SELECT repeat('x', 1000) FROM generate_series(1, 20000)"
        )
        walstream.until("Kafka does not take records")
        stop(server, mode)
        assert walstream.running
        server.start()
        broker.start()
        with Reader(broker.bootstrap, runs.prefix) as reader:
            reader.until(partial(distinct, 20000), 60)


@pytest.mark.same_on_15
def test_a_shutdown_ends_while_look_ups_share_a_session(
    own_postgres: OwnPostgres, runs: Runs, reader: Reader
) -> None:
    server, rounds = own_postgres(18), 500
    database = Database(server)
    database.execute(
        "CREATE TABLE t (id int PRIMARY KEY); ALTER TABLE t REPLICA IDENTITY FULL"
    )
    walstream = runs(server.dsn()).start().streaming()
    assert walstream.terminate() == 0
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        for number in range(rounds):
            with connection.transaction():
                connection.execute("TRUNCATE t")
                connection.execute("INSERT INTO t VALUES (%s)", (number,))
    with walstream:
        reader.until(lambda records: len(records) > 50)  # it is at it
        stop(server, "smart")
        assert walstream.running
        server.start()
        reader.until(partial(distinct, 2 * rounds), 60)
        assert walstream.terminate() == 0


def stop(server: LocalPostgres, mode: StopMode) -> None:
    """Ask for this shutdown; raises when somebody has to be cut off for it."""
    server.stop(mode, timeout_s=_WAITED_FOR_S)


def producer(bootstrap: str, messages: int) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "queue.buffering.max.messages": str(messages),
    }


@_WAYS
def test_a_shutdown_ends_while_wal_is_retained(
    version: int, mode: StopMode, own_postgres: OwnPostgres, runs: Runs, reader: Reader
) -> None:
    server = own_postgres(version)
    database = Database(server)
    database.execute("CREATE TABLE t (id serial PRIMARY KEY)")
    with runs(server.dsn(), source={"retain": "64MiB"}) as walstream:
        database.execute("INSERT INTO t DEFAULT VALUES")
        reader.count(1)
        stop(server, mode)
        server.start()
        database.execute("INSERT INTO t DEFAULT VALUES")
        reader.until(partial(distinct, 2))
        assert walstream.terminate() == 0


def test_one_transaction_is_confirmed_soon(stream: Stream) -> None:
    for number in range(3):
        stream.database.execute("INSERT INTO load VALUES (%s, 1)", number)
        ((written,),) = stream.database.fetch(
            "SELECT pg_current_wal_insert_lsn()::text"
        )
        assert within(partial(passes_lsn, stream, parse(written)), _SOON_S)


def passes_lsn(stream: Stream, lsn: int) -> bool:
    return confirmed(stream) >= lsn


def confirmed(stream: Stream) -> int:
    """Look at the slot from outside."""
    ((lsn,),) = stream.database.fetch(
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots"
        " WHERE slot_name = %s",
        stream.walstream.slot,
    )
    return parse(lsn)


def test_a_terminated_walsender_is_replaced(stream: Stream) -> None:
    database = stream.database
    for number in range(3):
        before = holder(stream)
        ended = database.fetch("SELECT pg_terminate_backend(%s)", before)
        assert ended == [(True,)]
        database.execute("INSERT INTO load VALUES (%s, 1)", number)
        # what was delivered but not yet stored comes again
        stream.reader.until(partial(distinct, number + 1))
        replaced = lambda: holder(stream) not in (before, 0)  # noqa: B023, E731
        wait_until(replaced, 10, "the slot is held again")


def holder(stream: Stream) -> int:
    """Name the walsender that reads the slot; 0: there is none."""
    ((pid,),) = stream.database.fetch(
        "SELECT active_pid FROM pg_replication_slots WHERE slot_name = %s",
        stream.walstream.slot,
    )
    return int(pid or 0)


@pytest.mark.same_on_15
def test_an_idle_slot_follows_while_another_database_writes(stream: Stream) -> None:
    """5 MB/s for 10 s here; retained WAL is looked at in the long form."""
    neighbour = Database(stream.database.server)
    neighbour.execute("CREATE TABLE IF NOT EXISTS noise (v text)")
    try:
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            neighbour.execute(
                "INSERT INTO noise SELECT repeat(md5(i::text), 31)"
                " FROM generate_series(1, 500) i"
            )
            assert within(lambda: behind(stream) <= 16 << 20, _SOON_S)
            time.sleep(0.1)  # the rate, not a wait for luck
    finally:
        neighbour.execute("DROP TABLE noise")


@pytest.mark.fault_long
@pytest.mark.takes(120)
def test_an_idle_slot_lets_wal_go(stream: Stream) -> None:
    neighbour = Database(stream.database.server)
    neighbour.execute("CREATE TABLE IF NOT EXISTS noise (v text)")
    try:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            neighbour.execute(
                "INSERT INTO noise SELECT repeat(md5(i::text), 31)"
                " FROM generate_series(1, 500) i"
            )
            assert behind(stream) <= 16 << 20
            time.sleep(0.1)
        wait_until(lambda: retained(stream) <= 32 << 20, 30, "WAL is let go")
    finally:
        neighbour.execute("DROP TABLE noise")


def behind(stream: Stream) -> int:
    """Bytes between the slot's confirmed LSN and the server's."""
    ((lag,),) = stream.database.fetch(
        "SELECT pg_current_wal_lsn() - confirmed_flush_lsn FROM pg_replication_slots"
        " WHERE slot_name = %s",
        stream.walstream.slot,
    )
    return int(lag)


def retained(stream: Stream) -> int:
    """Bytes of WAL that the slot holds."""
    ((size,),) = stream.database.fetch(
        "SELECT pg_current_wal_lsn() - restart_lsn FROM pg_replication_slots"
        " WHERE slot_name = %s",
        stream.walstream.slot,
    )
    return int(size)
