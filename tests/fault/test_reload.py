"""The configuration is read again and again, and passwords change, under load."""

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from tests.fault.test_kill_cycles import settle
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Stream, streamed
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.op_order import OracleSlot
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.walstream import Walstream, toml

_SEED = int(os.environ.get("WALSTREAM_TEST_SEED") or time.time())
_SHORT = 3
_LONG = 100
_CHANGES: tuple[dict[str, Any], ...] = (
    {"memory": "64MiB"},
    {"memory": "32MiB"},
    {"shutdown_timeout": "30s"},
    {"log_level": "debug"},  # no worker begins again for it
)


@pytest.fixture
def stream(
    postgres18: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> Iterator[Stream]:
    with streamed(
        postgres18, kafka, tmp_path, before=TABLE, sink={"topic_partitions": 4}
    ) as made:
        yield made


def test_reloads_under_load_lose_and_repeat_nothing(stream: Stream) -> None:
    reloads(stream, _SHORT)


@pytest.mark.fault_long
@pytest.mark.takes(600)
def test_a_hundred_reloads_under_load_lose_and_repeat_nothing(stream: Stream) -> None:
    reloads(stream, _LONG)


def reloads(stream: Stream, count: int) -> None:
    print(f"seed {_SEED}")  # noqa: T201 - to replay a failure
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    walstream, began = stream.walstream, 0
    oracle = OracleSlot(stream.database)
    with Load(stream.database.dsn, _SEED) as load:
        for _ in range(count):
            change = choose.choice(_CHANGES)
            begins = any(walstream.top.get(key) != change[key] for key in change)
            began += begins and "log_level" not in change
            walstream.top = {**walstream.top, **change}
            walstream.configuration.write_text(toml(walstream.document()), "utf-8")
            told = len(walstream.said("the configuration was read"))
            walstream.signal(1)
            walstream.until_said("the configuration was read", told + 1)
            time.sleep(choose.uniform(0.0, 1.0))
            load.wait_for_more(3)
    assert settle(stream, oracle) == 0
    # asked again before it had begun again, it begins once
    assert 1 <= len(walstream.said("drained")) <= began + 1


def test_a_password_rotated_under_load_leaves_no_gap(
    own_postgres: OwnPostgres, kafka: KafkaServer, tmp_path: Path
) -> None:
    rotations(own_postgres, kafka, tmp_path, _SHORT)


@pytest.mark.fault_long
@pytest.mark.takes(300)
def test_a_password_rotated_twenty_times_under_load_leaves_no_gap(
    own_postgres: OwnPostgres, kafka: KafkaServer, tmp_path: Path
) -> None:
    rotations(own_postgres, kafka, tmp_path, 20)


def rotations(
    own_postgres: OwnPostgres, kafka: KafkaServer, folder: Path, count: int
) -> None:
    choose = random.Random(_SEED)  # noqa: S311 - a test's moments
    server = own_postgres(18)
    home = Database(server)
    home.execute("CREATE ROLE app SUPERUSER LOGIN PASSWORD 'p0'")
    rules = server.data / "pg_hba.conf"
    rules.write_text(f"host all app 127.0.0.1/32 scram-sha-256\n{rules.read_text()}")
    home.execute("SELECT pg_reload_conf()")
    secret = folder / "password"
    secret.write_text("p0")

    with (
        temporary_database(server) as database,
        Reader(kafka.bootstrap, "rotated.") as reader,
    ):
        database.execute(TABLE)
        dsn = f"{make_conninfo(database.dsn, user='app')} password=${{file:{secret}}}"
        walstream = Walstream(
            database.dsn, kafka.bootstrap, folder, "rotated.", source={"dsn": dsn}
        )
        with walstream:
            stream = Stream(database, walstream, reader)
            oracle = OracleSlot(database)
            supervisor = walstream.pid
            with Load(database.dsn, _SEED) as load:
                for turn in range(1, count + 1):
                    rotate(walstream, home, secret, f"p{turn}", choose)
                    load.wait_for_more(10)
            assert walstream.running
            assert walstream.pid == supervisor
            settle(stream, oracle)


def rotate(
    walstream: Walstream, home: Database, secret: Path, to: str, choose: random.Random
) -> None:
    """Change the server's password, cut the sessions, and then the file."""
    refusals = len(walstream.said("password authentication failed"))
    home.execute(f"ALTER ROLE app PASSWORD '{to}'")
    cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'app'"
    assert home.fetch(cut)
    walstream.until_said("password authentication failed", refusals + 1)
    time.sleep(choose.uniform(0.0, 2.0))
    fresh = secret.with_suffix(".new")
    fresh.write_text(to)
    fresh.rename(secret)
    streams = "SELECT FROM pg_stat_replication WHERE usename = 'app'"
    wait_until(lambda: home.fetch(streams), 60, "it streams with the new one")
