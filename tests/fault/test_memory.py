"""Memory is bounded, whatever the size of a transaction or the length of an outage."""

import time
from pathlib import Path

import pytest

from tests.fix_kafka import KafkaServer, OwnKafka
from tests.fix_postgres import PostgresServer, temporary_database
from tests.fix_walstream import Runs, streamed
from tests.names import distinct
from tests.reading import Reader
from tests.rss import PeakRss
from tests.waiting import wait_until
from walstream.lsn import parse

_LIMIT = 200_000_000
_TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, v text)"
_FILL = (
    "INSERT INTO t SELECT i, 'a row of about a hundred bytes, as most tables have'"
    " || md5(i::text) FROM generate_series(1, %s) i"
)


def test_a_transaction_of_300_thousand_rows_passes(
    newest_postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    large_transaction(newest_postgres, kafka, tmp_path, rows=300_000)


@pytest.mark.fault_long
def test_a_transaction_of_5_million_rows_passes(
    postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    large_transaction(postgres, kafka, tmp_path, rows=5_000_000)


def large_transaction(
    server: PostgresServer, kafka: KafkaServer, folder: Path, *, rows: int
) -> None:
    """One transaction; count what reached Kafka by the topic's offsets."""
    with (
        streamed(
            server, kafka, folder, before=_TABLE, sink={"topic_partitions": 4}
        ) as stream,
        PeakRss(stream.walstream.pid) as rss,
    ):
        stream.database.execute(_FILL, rows)
        ((written,),) = stream.database.fetch("SELECT pg_current_wal_lsn()::text")
        confirmed = (
            "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
            " AND confirmed_flush_lsn >= %s"
        )
        wait_until(
            lambda: stream.database.fetch(confirmed, stream.walstream.slot, written),
            60 + rows / 5000,
            "the transaction is delivered, stored and confirmed",
        )
        assert stream.reader.ends() == rows
        assert parse(written) > 0
    assert rss.samples > 20
    assert rss.peak <= _LIMIT, f"{rss.peak / 1e6:.0f} MB"
    print(f"{rows} rows, peak {rss.peak / 1e6:.0f} MB")  # noqa: T201 - a figure


@pytest.mark.fault_long
def test_an_outage_of_15_seconds_keeps_memory_flat(
    newest_postgres: PostgresServer, own_kafka: OwnKafka, runs: Runs
) -> None:
    outage(newest_postgres, own_kafka, runs, seconds=15)


@pytest.mark.fault_long
def test_an_outage_of_10_minutes_keeps_memory_flat(
    newest_postgres: PostgresServer, own_kafka: OwnKafka, runs: Runs
) -> None:
    outage(newest_postgres, own_kafka, runs, seconds=600)


def outage(
    server: PostgresServer, own_kafka: OwnKafka, runs: Runs, *, seconds: int
) -> None:
    """5 MB/s are written while the broker is gone; then all of it arrives."""
    broker = own_kafka()
    with temporary_database(server) as database:
        database.execute("CREATE TABLE t (id serial PRIMARY KEY, v text)")
        walstream = runs(database.dsn, bootstrap=broker.bootstrap)
        with walstream, PeakRss(walstream.pid) as rss:
            broker.kill()
            assert not broker.running
            rows = 0
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                database.execute(
                    "INSERT INTO t (v) SELECT repeat('x', 1000)"
                    " FROM generate_series(1, 1000)"
                )
                rows += 1000
                time.sleep(0.2)  # the rate, not a wait for luck
            broker.start()
            with Reader(broker.bootstrap, runs.prefix) as reader:
                wait_until(
                    lambda: reader.ends() >= rows, 60 + seconds, "all of it arrives"
                )
                if rows <= 100_000:
                    reader.until(lambda records: distinct(rows, records), 60)
            assert walstream.terminate() == 0
        assert rss.samples > 20
        assert rss.peak <= _LIMIT, f"{rss.peak / 1e6:.0f} MB"
        print(f"{rows} rows, peak {rss.peak / 1e6:.0f} MB")  # noqa: T201 - a figure
