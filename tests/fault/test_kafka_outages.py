"""Kafka goes away, freezes, comes back: nothing is lost, PostgreSQL hears of us."""

import signal
import time
from functools import partial

import psutil
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import OwnKafka
from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Runs
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import (
    OracleSlot,
    assert_rewind_and_continue,
    distinct,
    foreign,
    missing,
)
from tests.support.oracles.topic_reader import Reader

_SMALL_QUEUE = {"queue.buffering.max.messages": "200"}


@pytest.mark.fault_long
@pytest.mark.takes(12)
def test_rows_written_while_broker_and_walstream_were_down_arrive(
    newest_postgres: PostgresServer, own_kafka: OwnKafka, runs: Runs
) -> None:
    broker = own_kafka()
    with temporary_database(newest_postgres) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        walstream = runs(
            database.dsn, bootstrap=broker.bootstrap, top={"shutdown_timeout": "3s"}
        )
        with walstream:
            pid = broker.pid
            broker.stop()
            assert not psutil.pid_exists(pid)
            database.execute("INSERT INTO t SELECT generate_series(1, 1000)")
            wait_until_received(database, walstream.slot)
            assert walstream.terminate(timeout_s=40) == 0
            assert walstream.said("the rest is sent again")
        broker.start()
        with walstream, Reader(broker.bootstrap, runs.prefix) as reader:
            reader.count(1000)
            assert walstream.terminate() == 0


def wait_until_received(database: Database, slot: str) -> None:
    """Wait until walstream has told that it has all that was written."""
    ((written,),) = database.fetch("SELECT pg_current_wal_lsn()::text")
    received = (
        "SELECT 1 FROM pg_stat_replication r JOIN pg_replication_slots s"
        " ON s.active_pid = r.pid WHERE slot_name = %s AND write_lsn >= %s"
    )
    wait_until(
        lambda: database.fetch(received, slot, written), 15, "walstream has the rows"
    )


def test_a_second_sigterm_ends_at_once(
    newest_postgres: PostgresServer, own_kafka: OwnKafka, runs: Runs
) -> None:
    broker = own_kafka()
    with temporary_database(newest_postgres) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        walstream = runs(
            database.dsn, bootstrap=broker.bootstrap, top={"shutdown_timeout": "10min"}
        )
        with walstream:
            database.execute("INSERT INTO t VALUES (0)")
            with Reader(broker.bootstrap, runs.prefix) as reader:
                reader.count(1)  # behind a first record in flight nothing is taken in
            broker.kill()
            database.execute("INSERT INTO t SELECT generate_series(1, 1000)")
            wait_until_received(database, walstream.slot)
            worker = walstream.worker_pid()
            walstream.signal(signal.SIGTERM)
            with pytest.raises(AssertionError, match="runs on"):
                walstream.wait(2)  # it drains
            walstream.signal(signal.SIGTERM)
            assert walstream.wait(30) == 0  # not ten minutes
            wait_until(lambda: not psutil.pid_exists(worker), 10, "the worker ended")
        broker.start()
        with walstream, Reader(broker.bootstrap, runs.prefix) as reader:
            reader.count(1001)
            assert walstream.terminate() == 0


def test_unreachable_kafka_at_start_is_waited_for_and_said_once(
    newest_postgres: PostgresServer, own_kafka: OwnKafka, runs: Runs
) -> None:
    broker = own_kafka()
    broker.stop()
    with temporary_database(newest_postgres) as database:
        database.execute("CREATE TABLE t (id int PRIMARY KEY)")
        walstream = runs(database.dsn, bootstrap=broker.bootstrap).start()
        walstream.until("waiting for Kafka")
        slots = "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
        assert database.fetch(slots, walstream.slot) == []
        broker.start()
        walstream.streaming()
        assert len(walstream.said("waiting for Kafka")) == 1
        database.execute("INSERT INTO t SELECT generate_series(1, 10)")
        with Reader(broker.bootstrap, runs.prefix) as reader:
            reader.count(10)
        assert walstream.terminate() == 0


def test_broker_kills_and_freezes_under_load_lose_nothing(
    newest_postgres: PostgresServer, own_kafka: OwnKafka, runs: Runs
) -> None:
    broker = own_kafka()
    with temporary_database(newest_postgres) as database:
        database.execute(TABLE)
        producer = {"bootstrap.servers": broker.bootstrap, **_SMALL_QUEUE}
        with (
            runs(
                database.dsn,
                bootstrap=broker.bootstrap,
                sink={"topic_partitions": 4, "producer": producer},
            ) as walstream,
            Reader(broker.bootstrap, runs.prefix) as reader,
        ):
            oracle = OracleSlot(database)
            with Load(database.dsn, seed=7) as load:
                load.wait_for_more(20)
                broker.freeze()
                process = psutil.Process(broker.pid)
                wait_until(
                    lambda: process.status() == psutil.STATUS_STOPPED, 5, "it froze"
                )
                load.wait_for_more(300)
                broker.thaw()
                load.wait_for_more(50)
                pid = broker.pid
                broker.kill()
                assert not psutil.pid_exists(pid)
                load.wait_for_more(300)
                broker.start()
                load.wait_for_more(20)
            expected = oracle.names()
            reader.until(lambda records: not missing(expected, records), 60)
            assert walstream.terminate() == 0
            assert foreign(expected, reader.read()) == []
            assert_rewind_and_continue(reader.records)


@pytest.mark.parametrize("version", [15, 18])
@pytest.mark.fault_long
def test_a_paused_stream_is_kept_alive(
    version: int, own_postgres: OwnPostgres, own_kafka: OwnKafka, runs: Runs
) -> None:
    """Reading is paused for three times wal_sender_timeout: no reconnect."""
    server, broker = own_postgres(version, wal_sender_timeout="5s"), own_kafka()
    database = Database(server)
    database.execute("CREATE TABLE t (id serial PRIMARY KEY, v text)")
    producer = {"bootstrap.servers": broker.bootstrap, **_SMALL_QUEUE}
    with runs(
        server.dsn(), bootstrap=broker.bootstrap, sink={"producer": producer}
    ) as walstream:
        ((before,),) = database.fetch("SELECT active_pid FROM pg_replication_slots")
        broker.freeze()
        database.execute(
            "INSERT INTO t (v) SELECT repeat('x', 1000) FROM generate_series(1, 50000)"
        )
        time.sleep(16)  # the fault's length, not a wait for luck
        ((after,),) = database.fetch("SELECT active_pid FROM pg_replication_slots")
        assert after == before
        broker.thaw()
        with Reader(broker.bootstrap, runs.prefix) as reader:
            reader.until(partial(distinct, 50000), 60)
        wait_until(lambda: walstream.running, 1, "it runs on")
        assert not walstream.said("trying again")
        assert walstream.terminate() == 0
