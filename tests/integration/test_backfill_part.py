"""Parts of tables: `backfill --where`, and `backfill_where` for the first one."""

import json
from collections.abc import Callable
from typing import Any

import psycopg
import pytest

from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.verb import Done, verb
from tests.support.programs.walstream import Walstream, toml
from walstream.op import Kind

TABLES = """
CREATE TABLE t (id int PRIMARY KEY, v text);
INSERT INTO t SELECT i, 'v' || i FROM generate_series(1, 20) i;
CREATE TABLE bare (id int); INSERT INTO bare VALUES (1)
"""
FIRST = {"backfill_where": {"public.t": "id > 15"}}

Made = Callable[..., Walstream]


@pytest.fixture
def made(database: Database, runs: Runs) -> Made:
    database.execute(TABLES)

    def run(**source: Any) -> Walstream:
        return runs(database.dsn, source={"backfill": "never", **source})

    return run


def backfill(walstream: Walstream, *arguments: str) -> Done:
    return verb(walstream.configuration, "backfill", *arguments)


def ids(records: list[Record], table: str = "t") -> list[int]:
    found = [record for record in records if record.op.table.name == table]
    assert all(record.kind is Kind.INSERT for record in found)
    return sorted(int(record.new["id"]) for record in found)


def test_a_part_is_read_beside_the_stream(
    database: Database, made: Made, reader: Reader
) -> None:
    with made() as walstream:
        walstream.streaming()
        asked = "t", "--where", "v IN ('v3', 'v7') OR id > 19", "--wait"
        done = backfill(walstream, *asked)
        assert done.returncode == 0, done.stdout + done.stderr
        database.execute("INSERT INTO t VALUES (99)")
        reader.until(lambda records: 99 in ids(records))
    assert ids(reader.read()) == [3, 7, 20, 99]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["t", "--where", "id >"], "does not fit table 'public.t': syntax error"),
        (["t", "--where", "name = 1"], 'column "name" does not exist'),
        (["t", "--where", "id"], "must be type boolean"),
        (["t", "--where", "part.id > 5"], "missing FROM-clause entry"),
        (["t", "--where", "t.id > 5"], "missing FROM-clause entry"),
        (["t", "--where", "true) OR (true"], "is not one expression of SQL"),
        (["t", "--where", "id > 1", "--replace"], "--replace empties a table"),
        (["bare", "--where", "id > 1"], "has no row key"),
    ],
)
@pytest.mark.parametrize("running", [True, False], ids=["beside", "stopped"])
def test_a_part_that_cannot_be_read_is_refused_before_anything_begins(
    made: Made, reader: Reader, arguments: list[str], said: str, running: bool
) -> None:
    walstream = made().start().streaming()
    if not running:
        assert walstream.terminate() == 0
    done = backfill(walstream, *arguments)
    assert done.returncode == 2, done.stdout + done.stderr
    assert said in " ".join((done.stdout + done.stderr).split())
    if running:
        assert walstream.terminate() == 0
    assert not reader.read()


def test_status_shows_the_condition_of_a_part_that_waits(
    database: Database, made: Made
) -> None:
    with made() as walstream, psycopg.connect(database.dsn) as other:
        walstream.streaming()
        other.execute("SELECT pg_current_xact_id()")  # what it waits for
        assert backfill(walstream, "t", "--where", "id > 19").returncode == 0
        told = verb(walstream.configuration, "status", "--json").stdout
        (source,) = json.loads(told)["sources"]
        assert source["beside"]["public.t"]["where"] == "id > 19"
        text = verb(walstream.configuration, "status").stdout
        assert "id > 19" in " ".join(text.split())


def test_a_part_is_read_by_itself_where_nothing_streams(
    made: Made, reader: Reader
) -> None:
    walstream = made().start().streaming()
    assert walstream.terminate() == 0
    done = backfill(walstream, "t", "--where", "id < 4")
    assert done.returncode == 0, done.stdout + done.stderr
    assert ids(reader.count(3)) == [1, 2, 3]


def test_the_first_backfill_sends_the_part_also_after_a_crash(
    database: Database, made: Made, reader: Reader
) -> None:
    walstream = made(backfill="initial", **FIRST)
    database.execute("DROP TABLE bare")
    with psycopg.connect(database.dsn) as other:
        walstream.start()
        walstream.until("slot created")
        other.execute("LOCK t IN ACCESS EXCLUSIVE MODE")
        walstream.kill()
    assert not ids(reader.read())
    walstream.start().until("backfill ended").streaming()
    database.execute("CREATE TABLE later (id int PRIMARY KEY)")
    database.execute("INSERT INTO t VALUES (99)")
    reader.until(lambda records: 99 in ids(records))
    assert walstream.terminate() == 0
    assert sorted(set(ids(reader.read()))) == [16, 17, 18, 19, 20, 99]


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ({"public.t": "nothing > 1"}, 'column "nothing" does not exist'),
        ({"public.bare": "id > 1"}, "has no row key"),
    ],
)
def test_a_condition_that_does_not_fit_stops_the_first_start(
    database: Database, made: Made, where: dict[str, str], said: str
) -> None:
    walstream = made(backfill="initial", backfill_where=where)
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    checked = json.loads(verb(walstream.configuration, "check", "--json").stdout)
    found = [one["what"] for one in checked["sources"][0]["findings"]]
    assert any(said in what for what in found), found
    walstream.start().ends_with(2, said)
    assert not database.fetch("SELECT FROM pg_publication")


def test_a_table_that_joins_later_is_read_by_its_condition(
    database: Database, made: Made, reader: Reader
) -> None:
    where = {"public.later": "id > 1"}
    walstream = made(backfill="initial", backfill_where=where)
    walstream.start().until("backfill ended").streaming()
    assert walstream.terminate() == 0
    database.execute(
        "CREATE TABLE later (id int PRIMARY KEY); INSERT INTO later VALUES (1), (2)"
    )
    with walstream:
        reader.until(lambda records: ids(records, "later") == [2])
        database.execute("INSERT INTO later VALUES (3)")
        reader.until(lambda records: ids(records, "later") == [2, 3])
