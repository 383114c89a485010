"""Memory is bounded, whatever the size of a transaction or the length of an outage.

One value that is large costs what its copies take, and their number is bounded.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer, OwnKafka
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs, Stream, streamed
from tests.support.oracles.op_order import distinct
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.memory import PeakRss, forget_peaks, peaks
from tests.support.selection import shortened
from walstream.lsn import parse

pytestmark = pytest.mark.own_start

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
@pytest.mark.takes(600)
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
@pytest.mark.takes(1200)
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


_LARGEST = 1_000_000_000
_BROKER = {
    "socket.request.max.bytes": str(_LARGEST),
    "message.max.bytes": str(_LARGEST),
    "replica.fetch.max.bytes": str(_LARGEST),
}
_SENT = 4.0  # copies of a value, at most
_PARKED = 2.5
_PARKING = "parked.large"
_TEXTS = {
    "ascii": "",
    "cyrillic": "абвгдежзийклмноп",
    "emoji": "😀😁😂😃😄😅😆😇😈😉😊😋😌😍😎😏",
    # one character of four bytes: as a str, every other takes four bytes too
    "mixed": "😀",
}


def text_of(kind: str, size: int) -> str:
    """Write so many bytes of random text, which no compression makes small."""
    digits = "0123456789abcdef"
    if kind == "mixed":
        return _TEXTS["mixed"] + os.urandom(size // 2 - 2).hex()
    if kind == "ascii":
        return os.urandom(size // 2).hex()
    letters = str(_TEXTS[kind])
    count = size // len(letters[0].encode())
    return os.urandom(count // 2).hex().translate(str.maketrans(digits, letters))


@pytest.mark.parametrize("kind", shortened(["ascii", "cyrillic", "mixed"], "mixed"))
def test_a_large_value_costs_at_most_four_times_its_size(
    own_kafka: OwnKafka, newest_postgres: PostgresServer, tmp_path: Path, kind: str
) -> None:
    sent(newest_postgres, own_kafka, tmp_path, text_of(kind, 50_000_000))


@pytest.mark.fault_long
@pytest.mark.takes(120)
@pytest.mark.parametrize("size", [112_000_000, 200_000_000])
@pytest.mark.parametrize("kind", sorted(_TEXTS))
def test_a_huge_value_costs_at_most_four_times_its_size(
    own_kafka: OwnKafka,
    newest_postgres: PostgresServer,
    tmp_path: Path,
    kind: str,
    size: int,
) -> None:
    sent(newest_postgres, own_kafka, tmp_path, text_of(kind, size))


def sent(server: PostgresServer, own_kafka: OwnKafka, folder: Path, text: str) -> None:
    """Send one row, and measure; the text that arrived is the one that was written."""
    size = len(text.encode())
    limit = {"max.message.bytes": str(_LARGEST)}
    broker = own_kafka(_BROKER, heap="4g")
    with streamed(
        server, broker, folder, before=_TABLE, sink={"topic_config": limit}
    ) as stream:
        with measured(stream, size, _SENT):
            stream.database.execute("INSERT INTO t VALUES (1, %s)", text)
            wait_until(lambda: stream.reader.ends() == 2, 120, "it arrives")
        _, record = stream.reader.count(2, 120)
        assert record.op.new == ["1", text]
        assert stream.walstream.terminate() == 0


@pytest.mark.parametrize("kind", shortened(["ascii", "mixed"], "mixed"))
def test_a_large_value_that_is_parked_costs_less_than_three_times_its_size(
    own_kafka: OwnKafka, newest_postgres: PostgresServer, tmp_path: Path, kind: str
) -> None:
    parked(newest_postgres, own_kafka, tmp_path, text_of(kind, 50_000_000))


@pytest.mark.fault_long
@pytest.mark.takes(120)
@pytest.mark.parametrize("size", [112_000_000, 200_000_000])
@pytest.mark.parametrize("kind", sorted(_TEXTS))
def test_a_huge_value_that_is_parked_costs_less_than_three_times_its_size(
    own_kafka: OwnKafka,
    newest_postgres: PostgresServer,
    tmp_path: Path,
    kind: str,
    size: int,
) -> None:
    parked(newest_postgres, own_kafka, tmp_path, text_of(kind, size))


def parked(
    server: PostgresServer, own_kafka: OwnKafka, folder: Path, text: str
) -> None:
    """Park one row, and measure; what is left of it names its size."""
    broker = own_kafka()
    with streamed(
        server,
        broker,
        folder,
        before=_TABLE,
        prefix="parked.",
        sink={"on_too_large": _PARKING},
        decode=orjson.loads,
    ) as stream:
        size = len(text.encode())
        with measured(stream, size, _PARKED):
            stream.database.execute("INSERT INTO t VALUES (1, %s)", text)
            stream.reader.until(lambda records: len(records) == 2, 120)
        (record,) = [one for one in stream.reader.records if one.topic == _PARKING]
        said: Any = record.op
        assert said["key"] == '["1"]'
        assert said["size"] > size
        assert stream.walstream.terminate() == 0


@contextmanager
def measured(stream: Stream, size: int, most: float) -> Iterator[None]:
    """Compare the peak over all processes with what they took when idle."""
    stream.database.execute("INSERT INTO t VALUES (0, 'small')")
    wait_until(lambda: stream.reader.ends() == 1, 30, "the first row arrives")
    idle = forget_peaks(stream.walstream.pid)
    yield
    cost = (peaks(stream.walstream.pid) - idle) / size
    print(f"{size / 1e6:.0f} MB cost {cost:.2f} times as much")  # noqa: T201
    assert cost > 1.0  # it was measured
    assert cost <= most, f"{cost:.2f} times its size"
