"""Tables' old rows beside a running stream, with real servers and a load."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import DEVNULL, Popen

import pytest

from consumer import IdempotentConsumer
from tests.beside_load import (
    SCHEMA,
    TABLES,
    fill,
    folded,
    follow,
    loading,
    misplaced,
    stored,
)
from tests.consuming import Running
from tests.fix_kafka import KafkaServer
from tests.fix_postgres import Database, OwnPostgres, temporary_database
from tests.fix_walstream import Runs
from tests.reading import Reader, Record, TopicAdmin
from tests.running import SOURCE, Walstream
from tests.waiting import wait_until
from walstream.backfilling import Asked, backfill
from walstream.config import load
from walstream.control import ask_status
from walstream.local import LocalPostgres

ROWS = 2000
PUBLICATION = "CREATE PUBLICATION walstream FOR TABLE early"
ADD = "ALTER PUBLICATION walstream ADD TABLE late"
PARTITIONS = 3


def ask(walstream: Walstream, *tables: str, replace: bool = False) -> Asked:
    return backfill(load(walstream.configuration), SOURCE, tables, replace=replace)


def started(runs: Runs, dsn: str) -> Walstream:
    """Stream `early` to one topic for all tables."""
    topic = f"{runs.prefix}all"
    TopicAdmin(runs.bootstrap).create(topic, PARTITIONS)
    walstream = runs(dsn, source={"tables": []}, sink={"topic": topic})
    return walstream.start().streaming().streaming_said()


def until_done(walstream: Walstream, *tables: str, timeout_s: float = 30) -> None:
    def done() -> bool:
        told = ask_status(walstream.state.parent) or {"sources": {}}
        how = told["sources"].get(SOURCE, {}).get("beside", {})
        return all(how.get(name, {}).get("state") == "done" for name in tables)

    try:
        wait_until(done, timeout_s, "the tables are backfilled")
    except AssertionError:
        raise AssertionError(
            f"{ask_status(walstream.state.parent)}\n{walstream.text}"
        ) from None


def until_read(reader: Reader, database: Database) -> list[Record]:
    """Read until both tables are there, folded as they stand; give the records."""

    def same(_: list[Record]) -> bool:
        return all(
            folded(reader.records, table) == stored(database, table) for table in TABLES
        )

    try:
        return reader.until(same, 20, "both tables are as in the database")
    except AssertionError as error:
        raise AssertionError(str(error)[:300]) from None


def check(reader: Reader, database: Database) -> None:
    """See that both who take records as they come and by position have the tables."""
    records = until_read(reader, database)
    by_position = sorted(
        {(r.partition, r.name): r for r in records}.values(), key=lambda r: r.name
    )
    for table in TABLES:
        assert folded(by_position, table) == stored(database, table)


@contextmanager
def followed(kafka: KafkaServer, topic: str, database: Database) -> Iterator[Running]:
    """Follow a topic into another database, exactly once."""
    with IdempotentConsumer(
        follow,
        database.dsn,
        group=f"g_{topic}",
        topics=[topic],
        kafka={"bootstrap.servers": kafka.bootstrap, "fetch.wait.max.ms": 10},
    ) as consumer:
        running = Running(consumer)
        yield running
    running.join()


def until_followed(running: Running, source: Database, target: Database) -> None:
    def same() -> bool:
        if running.error is not None:
            raise running.error
        return all(stored(target, table) == stored(source, table) for table in TABLES)

    wait_until(same, 30, "the follower has both tables")


def test_a_table_added_under_load_is_whole_for_every_reader(
    database: Database, runs: Runs, reader: Reader, kafka: KafkaServer
) -> None:
    database.execute(SCHEMA + PUBLICATION)
    fill(database, ROWS)
    walstream = started(runs, database.dsn)
    with temporary_database(database.server) as target:
        target.execute(SCHEMA)
        with followed(kafka, f"{runs.prefix}all", target) as follower:
            with loading(database) as load:
                load.more()
                database.execute(ADD)
                assert ask(walstream, "late").running
                # its old rows are not all of a table that was there before
                assert ask(walstream, "public.e*").tables == ["public.early"]
                until_done(walstream, "public.early", "public.late")
                load.more()
            check(reader, database)
            until_followed(follower, database, target)
    for partition in range(PARTITIONS):
        here = [r for r in reader.records if r.partition == partition]
        assert misplaced(here) == []
    names = [r.name for r in reader.records]
    assert len(names) == len(set(names))
    assert walstream.terminate() == 0


@contextmanager
def slow_standby(server: LocalPostgres, folder: Path) -> Iterator[None]:
    """Have commits wait for a standby that sleeps now and then."""
    database = Database(server)
    folder.mkdir()
    receiver = [str(server.binaries / "pg_receivewal"), "--synchronous", "-D"]
    dsn = f"{server.dsn()}?application_name=slow"
    with Popen([*receiver, folder, "-d", dsn], stdout=DEVNULL, stderr=DEVNULL) as child:
        there = "SELECT FROM pg_stat_replication WHERE application_name = 'slow'"
        wait_until(lambda: database.fetch(there), 10, "the standby receives")
        database.execute("ALTER SYSTEM SET synchronous_standby_names = 'slow'")
        database.execute("SELECT pg_reload_conf()")
        ended = threading.Event()

        def doze() -> None:
            while not ended.is_set():
                child.send_signal(signal.SIGSTOP)
                ended.wait(0.15)
                child.send_signal(signal.SIGCONT)
                ended.wait(0.05)

        dozing = threading.Thread(target=doze)
        dozing.start()
        try:
            yield
        finally:
            ended.set()
            dozing.join()
            database.execute("ALTER SYSTEM RESET synchronous_standby_names")
            database.execute("SELECT pg_reload_conf()")
            child.kill()


@pytest.mark.parametrize("version", [15, 18], ids=["pg15", "pg18"])
def test_a_slow_synchronous_standby_lets_no_stale_row_win(
    own_postgres: OwnPostgres, runs: Runs, reader: Reader, tmp_path: Path, version: int
) -> None:
    server = own_postgres(version)
    database = Database(server)
    database.execute(SCHEMA + PUBLICATION)
    fill(database, 300)
    walstream = started(runs, database.dsn)
    with slow_standby(server, tmp_path / "standby"), loading(database) as load:
        load.more(20)
        database.execute(ADD)
        for _ in range(4):
            ask(walstream, "late", "early")
            until_done(walstream, "public.late", "public.early")
        load.more(20)
    check(reader, database)


def test_replace_repairs_what_a_gap_left(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(SCHEMA + PUBLICATION + ", late")
    walstream = started(runs, database.dsn)
    fill(database, 50)
    until_read(reader, database)
    database.execute("ALTER PUBLICATION walstream DROP TABLE late")
    database.execute("DELETE FROM late WHERE id % 3 = 0; UPDATE late SET note = 'gap'")
    database.execute(ADD)
    with loading(database):
        ask(walstream, "public.late", replace=True)
        until_done(walstream, "public.late")
    check(reader, database)
    truncates = [r for r in reader.of("late") if r.op.partitions]
    assert {r.partition for r in truncates} == set(range(PARTITIONS))
    assert all(r.op.snapshot for r in truncates)
