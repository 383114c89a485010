"""`walstream run --until-lsn`: ends by itself, and nothing below is missing."""

import os
import signal
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import psycopg
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, OwnPostgres
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import verb
from tests.support.programs.walstream import SOURCE, Walstream, toml
from tests.support.servers.standby import Standby
from walstream.lsn import parse
from walstream.status.instance import running as running_instance

pytestmark = [pytest.mark.same_on_15]

_TABLE = "CREATE TABLE t (id serial PRIMARY KEY)"
_INSERT = "INSERT INTO t DEFAULT VALUES"


def lsn(database: Database) -> str:
    ((found,),) = database.fetch("SELECT pg_current_wal_insert_lsn()::text")
    return str(found)


def confirmed(database: Database, slot: str) -> int:
    query = (
        "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name=%s"
    )
    ((found,),) = database.fetch(query, slot)
    return parse(found)


def write(database: Database, rows: int) -> None:
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        for _ in range(rows):
            connection.execute(_INSERT)


@contextmanager
def writer(database: Database) -> Iterator[None]:
    """Write all the time."""
    over = threading.Event()

    def run() -> None:
        with psycopg.connect(database.dsn, autocommit=True) as connection:
            while not over.is_set():
                connection.execute(_INSERT)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def wait_for_its_end(walstream: Walstream) -> None:
    """Wait until the worker has told at which LSN it ends."""

    def is_known() -> bool:
        found = running_instance(walstream.folder / "state")
        stream = found.sources[SOURCE].report.stream if found else None
        return bool(stream and stream.until)

    wait_until(is_known, 60, "the worker has told where it ends")


def test_it_ends_with_all_below_and_a_restart_repeats_nothing(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    walstream.start("--until-lsn", "now")
    assert walstream.wait() == 0  # the first start, on a quiet server
    write(database, 50)
    middle = lsn(database)
    write(database, 50)

    walstream.start("--until-lsn", middle, "-v")
    assert walstream.wait() == 0, walstream.text
    reader.count(50)  # and no more
    lines = [one for one in walstream.log if one.get("event") == "confirmed"]
    assert sum(one["delivered"] for one in lines) == 50
    read = [one["read"].rsplit(" ", 1) for one in lines if "read" in one]
    assert {table for table, _ in read} == {"public.t"}
    assert sum(int(count) for _, count in read) == 50
    assert confirmed(database, walstream.slot) <= parse(middle)
    assert walstream.said("everything up to the LSN is delivered")

    walstream.start("--until-lsn", "NOW")
    end = lsn(database)
    assert walstream.wait() == 0, walstream.text
    records = reader.count(100)
    assert len({record.op.lsn for record in records}) == 100
    assert confirmed(database, walstream.slot) >= max(one.op.lsn for one in records)
    assert parse(end) > records[-1].op.lsn

    # it is there already
    walstream.start("--until-lsn", middle)
    assert walstream.wait() == 0, walstream.text
    with walstream:
        write(database, 1)
        reader.count(101)
        assert walstream.terminate() == 0


def test_it_ends_although_writing_goes_on(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        assert walstream.terminate() == 0
    write(database, 20)
    with writer(database):
        walstream.start("--until-lsn", "now")
        assert walstream.wait() == 0, walstream.text
    found = {int(record.new["id"]) for record in reader.read()}
    assert set(range(1, 21)) <= found


def test_now_is_once_whatever_begins_again(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    walstream.start("--until-lsn", "now")
    assert walstream.wait() == 0
    write(database, 5)
    walstream.sink = {"producer": {"bootstrap.servers": "127.0.0.1:1"}}
    walstream.start("--until-lsn", "now")
    wait_for_its_end(walstream)
    write(database, 5)
    first = walstream.worker_pid()
    os.kill(first, signal.SIGKILL)
    wait_until(lambda: walstream.worker_pid() != first, 60, "another one runs")
    walstream.sink = {}
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    walstream.signal(signal.SIGHUP)
    assert walstream.wait() == 0, walstream.text
    reader.count(5)


def test_an_lsn_of_later_is_waited_for(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    high, low = lsn(database).split("/")
    ahead = f"{high}/{int(low, 16) + (1 << 18):X}"
    walstream.start("--until-lsn", ahead).streaming()
    assert walstream.running
    with writer(database):
        assert walstream.wait() == 0, walstream.text
    records = reader.read()
    assert records
    assert max(record.op.lsn for record in records) < parse(ahead)


def test_an_lsn_behind_the_header_of_a_segment_is_reached(
    database: Database, runs: Runs
) -> None:
    """An idle server sends up to the segment's first byte, and no further."""
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    walstream.start("--until-lsn", "now")
    assert walstream.wait() == 0
    write(database, 1)
    database.fetch("SELECT pg_switch_wal()")
    walstream.start("--until-lsn", lsn(database))
    assert walstream.wait() == 0, walstream.text


def test_rows_of_a_table_that_is_new_are_waited_for(
    database: Database, runs: Runs, reader: Reader
) -> None:
    """They were committed before; the stream has none of what came before it."""
    database.execute(_TABLE)
    walstream = runs(database.dsn, source={"tables": ["*.*"], "backfill": "initial"})
    walstream.start("--until-lsn", "now")
    assert walstream.wait() == 0, walstream.text
    database.execute(
        "CREATE TABLE late (id int PRIMARY KEY);"
        " INSERT INTO late SELECT generate_series(1, 5000)"
    )
    walstream.start("--until-lsn", "now")
    assert walstream.wait() == 0, walstream.text
    (waits,) = walstream.said("waiting for existing rows")
    assert waits["tables"] == "public.late"
    assert walstream.said("everything up to the LSN is delivered")
    reader.count(5000)


def test_rows_that_cannot_be_sent_are_named_by_an_end_with_5(
    database: Database, runs: Runs
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn, source={"tables": ["*.*"], "backfill": "initial"})
    walstream.start("--until-lsn", "now")
    assert walstream.wait() == 0, walstream.text
    database.execute(
        "CREATE TABLE late (id int PRIMARY KEY, v text);"
        " INSERT INTO late VALUES (1, repeat('x', 2000000))"  # no topic takes it
    )
    walstream.start("--until-lsn", "now").ends_with(5, "not sent: public.late")
    assert not walstream.said("everything up to the LSN is delivered")


def test_a_stop_before_the_lsn_ends_with_5(database: Database, runs: Runs) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    walstream.start("--until-lsn", "FF/0").streaming()
    assert walstream.terminate() == 5
    assert walstream.said("stopped before the LSN was reached")

    walstream.sink = {"producer": {"bootstrap.servers": "127.0.0.1:1"}}
    walstream.top = {"shutdown_timeout": "1s"}
    write(database, 1)  # which stays undelivered
    walstream.start("--until-lsn", "now").until("waiting for Kafka")
    assert walstream.terminate() == 5
    assert walstream.said("stopped before the LSN was reached")


def test_a_reload_that_takes_the_source_away_ends_with_5(
    database: Database, runs: Runs
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    walstream.sink = {"producer": {"bootstrap.servers": "127.0.0.1:1"}}
    walstream.start("--until-lsn", "now").until("waiting for Kafka")
    document = walstream.document()
    other = document["sources"].pop(SOURCE)
    document["sources"]["other"] = {**other, "sinks": ["none"]}
    document["sinks"] = {"none": {"kind": "discard", "format": "op"}}
    walstream.configuration.write_text(toml(document))
    walstream.signal(signal.SIGHUP)
    assert walstream.wait() == 5, walstream.text
    (said,) = walstream.said("stopped before the LSN was reached")
    assert said["source"] == SOURCE
    assert walstream.said("everything up to the LSN is delivered")  # of the other


def test_a_standby_is_refused_as_by_any_run(
    own_postgres: OwnPostgres, runs: Runs
) -> None:
    primary = own_postgres(18, wal_level="logical")
    with Standby(primary) as server:
        walstream = runs(Database(server).dsn, source={"slot": "s"})
        for until in ("now", "0/1"):
            walstream.start("--until-lsn", until)
            walstream.ends_with(2, "this server is a standby", "name the primary")


def test_now_is_the_end_of_the_server_that_a_reload_names(
    own_postgres: OwnPostgres, runs: Runs
) -> None:
    """That of the first one is an LSN of which the other knows nothing."""
    first, second = (Database(own_postgres(18, wal_level="logical")) for _ in range(2))
    for database in (first, second):
        database.execute(_TABLE)
    for _ in range(3):
        write(first, 1)
        first.fetch("SELECT pg_switch_wal()")
    walstream = runs(first.dsn, source={"slot": "s", "backfill": "never"})
    walstream.sink = {"producer": {"bootstrap.servers": "127.0.0.1:1"}}
    walstream.start("--until-lsn", "now")
    wait_for_its_end(walstream)
    walstream.sink = {}
    document = walstream.document()
    document["sources"][SOURCE]["dsn"] = second.dsn
    walstream.configuration.write_text(toml(document))
    walstream.signal(signal.SIGHUP)
    assert walstream.wait() == 0, walstream.text
    (done,) = walstream.said("everything up to the LSN is delivered")
    assert parse(done["until"]) <= parse(lsn(second)) < parse(lsn(first))


def test_a_reload_to_another_server_is_refused_where_an_lsn_was_given(
    database: Database, runs: Runs
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    walstream.start("--until-lsn", "FF/0").streaming()
    document = walstream.document()
    document["sources"][SOURCE]["dsn"] = "host=127.0.0.1 port=1"
    walstream.configuration.write_text(toml(document))
    walstream.signal(signal.SIGHUP)
    walstream.until("the new configuration is refused")
    assert "leads to another one" in walstream.text
    assert walstream.terminate() == 5


@pytest.mark.parametrize("text", ["soon", "12", "0/XY"])
def test_what_is_no_lsn_is_refused(database: Database, runs: Runs, text: str) -> None:
    runs(database.dsn).start("--until-lsn", text).ends_with(2, "neither an LSN")


def test_a_source_without_lsns_and_one_lsn_for_two_servers_are_refused(
    database: Database, runs: Runs
) -> None:
    walstream = runs(database.dsn)
    document = walstream.document()
    path = walstream.configuration

    def refusal(kind: Mapping[str, object], until: str, form: str = "op") -> str:
        other = {**kind, "sinks": ["none"]}
        document["sources"]["other"] = other
        document["sinks"]["none"] = {"kind": "discard", "format": form}
        path.write_text(toml(document))
        done = verb(path, "run", "--until-lsn", until)
        assert done.returncode == 2
        return done.stderr

    postgres = {"kind": "postgres", "dsn": database.dsn, "slot": "another"}
    assert "there are 2 sources" in refusal(postgres, "0/1")
    tables = {"t": {"primary_key": "id"}}
    sql = {"kind": "sql", "url": "sqlite:////none", "tables": tables}
    assert "source 'other' is not a postgres source" in refusal(sql, "now", "row")
