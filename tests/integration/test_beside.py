"""Tables' old rows beside a running stream, with real servers and a load."""

import json
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from subprocess import DEVNULL, Popen
from typing import Any

import pytest
from psycopg.conninfo import make_conninfo

from consumer import IdempotentConsumer
from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import (
    Database,
    OwnPostgres,
    PostgresServer,
    temporary_database,
)
from tests.support.fixtures.walstream import Runs
from tests.support.loads.incremental import (
    SCHEMA,
    TABLES,
    Load,
    fill,
    folded,
    follow,
    misplaced,
    stored,
)
from tests.support.oracles.topic_reader import Reader, Record, TopicAdmin
from tests.support.programs.consumer_thread import Running
from tests.support.programs.verb import verb
from tests.support.programs.walstream import SOURCE, Walstream, toml
from walstream.admin.backfill_request import RequestedBackfill, backfill
from walstream.config import load
from walstream.errors import ConfigError
from walstream.postgres import catalog
from walstream.postgres.capture import Capture
from walstream.postgres.connection import connect
from walstream.postgres.publication import names_of
from walstream.postgres.publication_memory import PUBLICATIONS
from walstream.postgres.selection import Selection
from walstream.status.instance import running
from walstream.testing import MemoryStore
from walstream.testing.servers import LocalPostgres

pytestmark = pytest.mark.same_on_15

ROWS = 2000
PUBLICATION = "CREATE PUBLICATION walstream FOR TABLE early"
ADD = "ALTER PUBLICATION walstream ADD TABLE late"
PARTITIONS = 3


def ask(walstream: Walstream, *tables: str, replace: bool = False) -> RequestedBackfill:
    return backfill(load(walstream.configuration), SOURCE, tables, replace=replace)


def started(runs: Runs, dsn: str) -> Walstream:
    """Stream `early` to one topic for all tables."""
    topic = f"{runs.prefix}all"
    TopicAdmin(runs.bootstrap).create(topic, PARTITIONS)
    walstream = runs(dsn, source={"tables": []}, sink={"topic": topic})
    return walstream.start().streaming().streaming_said()


def status(walstream: Walstream) -> dict[str, Any]:
    """Ask as an operator does."""
    done = verb(walstream.configuration, "status", "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def until_done(walstream: Walstream, *tables: str, timeout_s: float = 90) -> None:
    def done() -> bool:
        instance = running(walstream.state.parent)
        worker = instance.sources.get(SOURCE) if instance else None
        stream = worker.report.stream if worker else None
        beside = (stream and stream.beside) or {}
        return all(name in beside and beside[name].state == "done" for name in tables)

    try:
        wait_until(done, timeout_s, "the tables are backfilled")
    except AssertionError:
        raise AssertionError(
            f"{running(walstream.state.parent)}\n{walstream.text}"
        ) from None


def until_read(reader: Reader, database: Database) -> list[Record]:
    """Read until both tables are there, folded as they stand; give the records."""

    def same(records: list[Record]) -> bool:
        return len(records) == reader.ends() and all(
            folded(reader.records, table) == stored(database, table) for table in TABLES
        )

    try:
        return reader.until(same, 90, "both tables are as in the database")
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

    wait_until(same, 90, "the follower has both tables")


def test_a_table_added_under_load_is_whole_for_every_reader(
    database: Database, runs: Runs, reader: Reader, kafka: KafkaServer
) -> None:
    database.execute(SCHEMA + PUBLICATION)
    fill(database, ROWS)
    walstream = started(runs, database.dsn)
    with temporary_database(database.server) as target:
        target.execute(SCHEMA)
        with followed(kafka, f"{runs.prefix}all", target) as follower:
            with Load(database) as load:
                load.wait_for_more()
                database.execute(ADD)
                assert ask(walstream, "late").running
                # its old rows are not all of a table that was there before
                assert ask(walstream, "public.e*").tables == ["public.early"]
                until_done(walstream, "public.early", "public.late")
                load.wait_for_more()
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


@pytest.mark.parametrize(
    "version",
    [pytest.param(15, marks=pytest.mark.fault_long), 18],
    ids=["pg15", "pg18"],
)
def test_a_slow_synchronous_standby_lets_no_stale_row_win(
    own_postgres: OwnPostgres, runs: Runs, reader: Reader, tmp_path: Path, version: int
) -> None:
    server = own_postgres(version)
    database = Database(server)
    database.execute(SCHEMA + PUBLICATION)
    fill(database, 300)
    walstream = started(runs, database.dsn)
    with slow_standby(server, tmp_path / "standby"), Load(database) as load:
        load.wait_for_more(20)
        database.execute(ADD)
        for _ in range(4):
            ask(walstream, "late", "early")
            until_done(walstream, "public.late", "public.early")
        load.wait_for_more(20)
    check(reader, database)


@contextmanager
def never_alone(database: Database, turn: Callable[[], int]) -> Iterator[None]:
    """Have a transaction run at each moment; each lasts for a turn of something."""
    ended = threading.Event()

    def stay(first: int) -> None:
        with connect(database.dsn) as session:
            while not ended.is_set():
                began = turn()
                session.execute("BEGIN; INSERT INTO public.elsewhere DEFAULT VALUES")
                while turn() < began + 2 and not ended.wait(0.05):
                    pass
                session.execute("COMMIT")
                while turn() % 2 != first and not ended.wait(0.01):
                    pass

    threads = [threading.Thread(target=stay, args=(first,)) for first in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()


@pytest.mark.fault_long
@pytest.mark.takes(120)
def test_a_table_busier_than_may_be_held_ends_while_transactions_last(
    newest_postgres: PostgresServer, runs: Runs
) -> None:
    rounds = parts = 0
    ended = threading.Event()
    with temporary_database(newest_postgres) as database:
        database.execute(
            "CREATE TABLE early (id int PRIMARY KEY);"
            "CREATE TABLE elsewhere (id int GENERATED ALWAYS AS IDENTITY);"
            "CREATE TABLE busy (id int PRIMARY KEY, n int) WITH (fillfactor = 50);"
            "INSERT INTO busy SELECT i, 0 FROM generate_series(1, 120000) AS i;"
            "CREATE PUBLICATION walstream FOR TABLE early"
        )
        walstream = started(runs, database.dsn)

        def update() -> None:
            nonlocal rounds, parts
            behind = (
                "SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)"
                " > 16000000 FROM pg_replication_slots WHERE slot_name = %s"
            )
            with connect(database.dsn) as session:
                while not ended.is_set():
                    for part in range(12):
                        # as fast as the stream can follow
                        while session.execute(behind, (walstream.slot,)).fetchone() == (
                            True,
                        ) and not ended.wait(0.05):
                            pass
                        session.execute(
                            "UPDATE public.busy SET n = n + 1"
                            " WHERE id > %s AND id <= %s",
                            (part * 10_000, (part + 1) * 10_000),
                        )
                        parts += 1
                    rounds += 1  # more rows than the watch of a chunk may hold

        updating = threading.Thread(target=update)
        updating.start()
        try:
            with never_alone(database, lambda: rounds):
                wait_until(lambda: rounds, 120, "the table is busy")
                began = parts
                database.execute("ALTER PUBLICATION walstream ADD TABLE busy")
                ask(walstream, "busy")
                until_done(walstream, "public.busy", timeout_s=420)
                assert parts > began + 2
        finally:
            ended.set()
            updating.join()
        (said,) = walstream.said("table backfilled")
        assert said["rows"] > 0
        assert walstream.terminate(90) == 0


def test_replace_repairs_what_a_gap_left(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(SCHEMA + PUBLICATION + ", late")
    walstream = started(runs, database.dsn)
    fill(database, 50)
    until_read(reader, database)
    # PostgreSQL sends nothing of the rows that it writes here
    database.execute("ALTER TABLE late ALTER COLUMN note TYPE text USING 'gap ' || id")
    with Load(database):
        ask(walstream, "public.late", replace=True)
        until_done(walstream, "public.late")
    check(reader, database)
    truncates = [r for r in reader.of("late") if r.op.partitions]
    assert {r.partition for r in truncates} == set(range(PARTITIONS))
    assert all(r.op.snapshot for r in truncates)


@pytest.mark.fault_long
@pytest.mark.takes(25)
def test_an_instance_killed_in_the_middle_goes_on(
    newest_postgres: PostgresServer, runs: Runs, reader: Reader, kafka: KafkaServer
) -> None:
    with (
        temporary_database(newest_postgres) as database,
        temporary_database(newest_postgres) as target,
    ):
        for one in (database, target):
            one.execute(SCHEMA)
        database.execute(PUBLICATION + ", late")
        rows = 10_000  # of each: a reader is behind, and the kill still comes amid them
        fill(database, rows)
        walstream = started(runs, database.dsn)
        with followed(kafka, f"{runs.prefix}all", target) as follower:
            with Load(database) as load:
                ask(walstream, "early", replace=True)
                ask(walstream, "late", replace=True)
                for sent in (500, rows + 500):
                    kill_amid_rows(walstream, reader, sent)
                    load.wait_for_more(20)
                    walstream.start().streaming()
                until_done(walstream, "public.late")
            check(reader, database)
            until_followed(follower, database, target)
        assert walstream.terminate() == 0


def kill_amid_rows(walstream: Walstream, reader: Reader, sent: int) -> None:
    """Kill it when so many old rows came, and `late` is not whole yet."""
    for _ in range(5):
        reader.until(partial(has_snapshots, sent))
        walstream.kill()
        done = [entry["table"] for entry in walstream.said("backfilled")]
        if "public.late" not in done:
            return
        # the reader was too far behind: once more, from where it is not
        sent = sum(record.op.snapshot for record in reader.read()) + 500
        walstream.start().streaming().streaming_said()
        ask(walstream, "late", replace=True)
    raise AssertionError("it was never killed amid the rows of a table")


def has_snapshots(wanted: int, records: list[Record]) -> bool:
    return sum(record.op.snapshot for record in records) > wanted


def test_what_cannot_come_in_beside_is_refused(database: Database, runs: Runs) -> None:
    database.execute(
        SCHEMA + "CREATE TABLE bare (id int);"
        "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY LIST (id);"
        "CREATE TABLE leaf PARTITION OF root FOR VALUES IN (1);"
        "CREATE PUBLICATION walstream FOR TABLE early, root"
        " WITH (publish_via_partition_root = true);"
        "CREATE PUBLICATION walstream_insert FOR TABLE bare"
        " WITH (publish = 'insert, truncate')"
    )
    walstream = runs(database.dsn, source={"tables": []})
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    for name, what in (
        ("none", "there is no table 'public.none'"),
        ("public.erly", "did you mean 'public.early'"),
        ("late", "'public.late' is not captured"),
        ("leaf", "backfill 'public.root'"),
        ("bare", "has no row key"),
        ("other.*", "no captured table matches"),
        ("early", "has no position yet"),
    ):
        with pytest.raises(ConfigError, match=re.escape(what)):
            ask(walstream, name)
    walstream.start().streaming().streaming_said()
    assert ask(walstream, "public.*") == RequestedBackfill(
        ["public.early", "public.root"], True, {"public.bare": "it has no row key"}
    )
    until_done(walstream, "public.early", "public.root")
    assert walstream.terminate() == 0
    assert ask(walstream, "early") == RequestedBackfill(["public.early"], False, {})
    assert status(walstream)["sources"][0]["beside"] == {
        "public.early": {
            "rows": 0,
            "state": "waiting",
            "error": "",
            "remark": "",
            "where": "",
        }
    }
    walstream.start().streaming()
    until_done(walstream, "public.early")


def test_a_failing_read_is_said_kept_and_tried_again(
    database: Database, runs: Runs, reader: Reader
) -> None:
    role = f"stream_{database.name}"
    database.execute(SCHEMA + PUBLICATION)
    database.execute("INSERT INTO early VALUES (1, 1, 1, 'n', 'b')")
    database.execute(f"CREATE ROLE {role} LOGIN REPLICATION")
    walstream = runs(
        make_conninfo(database.dsn, user=role),
        source={"tables": []},
        sink={"topic": f"{runs.prefix}all"},
    )
    walstream.start().streaming().streaming_said()
    ask(walstream, "early")
    walstream.until("may not read")
    (said,) = walstream.said("backfill of a table is interrupted")
    assert said["repair"] == f'GRANT SELECT ON "public"."early" TO "{role}";'
    database.execute("UPDATE early SET n = 2")
    assert len(reader.count(1)) == 1  # the stream goes on

    def how() -> dict[str, Any]:
        tables = status(walstream)["sources"][0]["beside"]
        found: dict[str, Any] = tables["public.early"]
        return found

    # a worker reports each second
    wait_until(lambda: how()["state"] == "error", 10, "status says so")
    assert "may not read" in how()["error"]
    database.execute(said["repair"])
    ask(walstream, "early")
    until_done(walstream, "public.early")
    assert len(reader.count(2)) == 2
    assert walstream.terminate() == 0
    database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_a_row_too_large_for_a_topic_that_was_not_there_costs_its_table_alone(
    newest_postgres: PostgresServer, runs: Runs, reader: Reader
) -> None:
    with temporary_database(newest_postgres) as database:
        database.execute(SCHEMA + PUBLICATION)
        database.execute(
            "INSERT INTO late VALUES (1, 1, 1, repeat('x', 9000), 'b');"
            "CREATE TABLE fits (id int PRIMARY KEY); INSERT INTO fits VALUES (1)"
        )
        walstream = runs(
            database.dsn,
            source={"tables": []},
            sink={"topic_config": {"max.message.bytes": "5000"}},
        )
        walstream.start().streaming().streaming_said()
        database.execute(f"{ADD}, fits")
        ask(walstream, "late", "fits")
        until_done(walstream, "public.fits")
        (said,) = walstream.said("backfill of a table is interrupted")
        assert "a record of table 'public.late'" in said["error"]
        assert "takes 5000" in said["error"]
        tables = status(walstream)["sources"][0]["beside"]
        assert tables["public.late"]["state"] == "error"
        database.execute("INSERT INTO early VALUES (1, 1, 1, 'n', 'b')")
        reader.until(lambda _: reader.of("early"))
        assert {record.op.table.name for record in reader.read()} == {"early", "fits"}
        assert walstream.terminate() == 0


def test_rows_come_in_where_a_topic_takes_less_than_the_others(
    newest_postgres: PostgresServer, runs: Runs, reader: Reader
) -> None:
    with temporary_database(newest_postgres) as database:
        database.execute(SCHEMA + PUBLICATION)
        database.execute(
            "INSERT INTO late SELECT 1, i, 1, 'n', 'b' FROM generate_series(1, 400) i"
        )
        topic = f"{runs.prefix}public.late"
        TopicAdmin(runs.bootstrap).create(topic, 1, max_message_bytes="2000")
        walstream = runs(database.dsn, source={"tables": []})
        walstream.start().streaming().streaming_said()
        database.execute(ADD)
        ask(walstream, "late")
        until_done(walstream, "public.late")
        assert walstream.said("max.message.bytes of a topic changed")
        assert len(reader.count(400)) == 400
        assert walstream.terminate() == 0


def test_tables_that_come_into_the_publication_are_told_of(database: Database) -> None:
    grown: list[list[str]] = []
    kept: list[Any] = []

    def capture() -> Capture:
        return Capture(
            database.dsn,
            "walstream",
            Selection(["public.*"]),
            keep=kept.append,
            grown=lambda tables: grown.append(list(tables)),
        )

    database.execute(SCHEMA)
    with connect(database.dsn) as connection:
        first = capture()
        first.establish(connection)
        assert grown == []  # the slot's own snapshot has these
        remembered = first.watch.memory.stored("walstream")
        database.execute("CREATE TABLE later (id int PRIMARY KEY)")
        first.extend(connection, catalog.tables(connection))
        assert grown == [["public.later"]]
        # killed before it was kept
        capture().resume(connection, remembered, catalog.tables(connection))
        assert grown == [["public.later"]] * 2
        database.execute("CREATE TABLE bare (id int)")
        database.execute("CREATE SCHEMA s; CREATE TABLE s.own (id int PRIMARY KEY)")
        database.execute("ALTER PUBLICATION walstream ADD TABLE s.own")
        again = capture()
        last = PUBLICATIONS.read(MemoryStore(kept[-1]))
        again.resume(connection, last, catalog.tables(connection))
        assert grown[2:] == [["s.own"]]
        again.check(connection)
        assert grown[3:] == []
        database.execute(
            "CREATE TABLE root (id int PRIMARY KEY) PARTITION BY RANGE (id);"
            "CREATE TABLE leaf PARTITION OF root DEFAULT;"
            "ALTER PUBLICATION walstream ADD TABLE root"
        )
        again.check(connection)
        assert grown[3:] == [["public.root"]]  # as it goes out
        ((oid,),) = database.fetch("SELECT 'root'::regclass::oid::bigint")
        assert names_of(connection, [oid], leaves=True) == ["public.leaf"]
