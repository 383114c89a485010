"""Killed while a sink leaves, is away and comes back: both topics hold everything."""

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from secrets import token_hex

import psutil
import pytest

from tests.fault.test_kill_cycles import kill_worker
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import (
    OracleSlot,
    assert_rewind_and_continue,
    foreign,
    missing,
)
from tests.support.oracles.topic_reader import Reader, TopicAdmin
from tests.support.programs.walstream import Walstream
from walstream.errors import WalstreamError
from walstream.sources.postgres.detached.detached_sink import AWAY, DETACHED
from walstream.state.store import LmdbStore

pytestmark = [pytest.mark.fault, pytest.mark.same_on_15]
SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
OTHER = "other"
SMALL, LARGE = 3_000, 300_000  # bytes that its topic takes
LONGEST_S = 150.0


@pytest.fixture
def prefix() -> str:
    return f"away_{token_hex(5)}."


@pytest.fixture
def stream(
    postgres: PostgresServer,
    kafka: KafkaServer,
    prefix: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stream]:
    with streamed(
        postgres,
        kafka,
        tmp_path_factory.mktemp("detached"),
        before=TABLE,
        sink={"topic_partitions": 4},
        others={OTHER: {"topic": prefix + "{schema}.{table}", "topic_partitions": 4}},
    ) as made:
        yield made


def phase(walstream: Walstream) -> str:
    """Read in the state how it is with the other sink; "" where it is in the stream."""
    try:
        with LmdbStore.open_read_only(walstream.state) as positions:
            note = DETACHED.of(OTHER).read(positions) if positions else None
    except WalstreamError:
        return "being written"
    return note.phase if note else ""


def refuse(stream: Stream, admin: TopicAdmin, topic: str, number: int) -> None:
    """Have the other sink meet a record that its topic never takes."""
    admin.configure(topic, "max.message.bytes", str(SMALL))
    # what a broker measures is compressed
    query = (
        "INSERT INTO load SELECT %s, 0, string_agg(md5(random()::text), '')"
        " FROM generate_series(1, 600)"
    )
    stream.database.execute(query, -number)


def kill_one(walstream: Walstream, choose: random.Random) -> None:
    """SIGKILL a worker, or the whole group, which is started again."""
    if choose.random() < 0.5 and (workers := walstream.workers()):
        kill_worker(choose.choice(workers))
        return
    pid = walstream.pid
    assert psutil.pid_exists(pid)
    walstream.kill()
    assert not psutil.pid_exists(pid)
    walstream.start()


def cycles(stream: Stream, kafka: KafkaServer, prefix: str, count: int) -> None:
    print(f"seed {SEED}")  # noqa: T201 - to replay a failure
    choose = random.Random(SEED)  # noqa: S311 - a test's moments
    admin, topic = TopicAdmin(kafka.bootstrap), f"{prefix}public.load"
    walstream = stream.walstream
    oracle = OracleSlot(stream.database)
    with Reader(kafka.bootstrap, prefix) as second:
        with Load(stream.database.dsn, SEED, writers=2, pause_s=0.02) as load:
            second.until(bool)
            for number in range(1, count + 1):
                refuse(stream, admin, topic, number)
                time.sleep(choose.uniform(0.0, 1.0))
                kill_one(walstream, choose)
                wait_until(lambda: phase(walstream) == AWAY, LONGEST_S, "it is away")
                load.wait_for_more(10)
                kill_one(walstream, choose)
                admin.configure(topic, "max.message.bytes", str(LARGE))
                time.sleep(choose.uniform(0.0, 5.0))
                kill_one(walstream, choose)
                wait_until(lambda: not phase(walstream), LONGEST_S, "it is back")
            load.wait_for_more(10)
        settle(stream, second, oracle)


def settle(stream: Stream, second: Reader, oracle: OracleSlot) -> None:
    expected = oracle.names()
    for reader in (stream.reader, second):
        reader.until(lambda found: not missing(expected, found), LONGEST_S, "all come")
    mine = [stream.walstream.slot]
    wait_until(lambda: slots(stream.database) == mine, LONGEST_S, "the copy is dropped")
    stream.walstream.worker_pid()
    assert stream.walstream.terminate() == 0
    for reader in (stream.reader, second):
        records = reader.read()
        assert missing(expected, records) == []
        assert foreign(expected, records) == []
        assert_rewind_and_continue(records)
    assert slots(stream.database) == mine


def slots(database: Database) -> list[str]:
    query = (
        "SELECT slot_name FROM pg_replication_slots WHERE starts_with(slot_name, %s)"
    )
    return [name for (name,) in database.fetch(query, database.name)]


def test_a_sink_that_leaves_and_comes_back_misses_nothing_though_all_are_killed(
    stream: Stream, kafka: KafkaServer, prefix: str
) -> None:
    cycles(stream, kafka, prefix, 1)


@pytest.mark.fault_long
@pytest.mark.takes(600)
def test_ten_leaves_and_returns_with_kills_miss_nothing(
    stream: Stream, kafka: KafkaServer, prefix: str
) -> None:
    cycles(stream, kafka, prefix, 10)


def test_of_a_transactional_sink_that_was_killed_on_its_return_nothing_comes_twice(
    postgres: PostgresServer,
    kafka: KafkaServer,
    prefix: str,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Its own worker was ahead of the position from which the stream begins."""
    topics = {"topic": prefix + "{schema}.{table}", "topic_partitions": 4}
    with streamed(
        postgres,
        kafka,
        tmp_path_factory.mktemp("detached"),
        before=TABLE,
        sink={"topic_partitions": 4},
        others={OTHER: {**topics, "delivery": "transactional"}},
    ) as stream:
        admin, topic = TopicAdmin(kafka.bootstrap), f"{prefix}public.load"
        walstream, oracle = stream.walstream, OracleSlot(stream.database)
        with Reader(kafka.bootstrap, prefix) as second:
            with Load(stream.database.dsn, SEED, writers=2) as load:
                second.until(bool)
                for number in range(1, 4):
                    refuse(stream, admin, topic, number)
                    wait_until(
                        lambda: phase(walstream) == AWAY, LONGEST_S, "it is away"
                    )
                    load.wait_for_more(50)
                    admin.configure(topic, "max.message.bytes", str(LARGE))
                    wait_until(
                        lambda: phase(walstream) != AWAY, LONGEST_S, "it comes back"
                    )
                    walstream.kill()
                    walstream.start()
                    wait_until(lambda: not phase(walstream), LONGEST_S, "it is back")
                load.wait_for_more(10)
            settle(stream, second, oracle)
            names = Counter(record.name for record in second.records)
        twice = [name for name, times in names.items() if times > 1]
        assert twice == [], f"{len(twice)} of {len(names)}"
