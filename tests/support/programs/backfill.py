"""A table with rows, the walstream that backfills it, and the claim that both agree."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.spark import LOCAL, MASTER
from tests.support.fixtures.walstream import Runs
from tests.support.loads.keyed import TABLE, Load
from tests.support.oracles.table_state import by_arrival, by_position, in_place, rows_of
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.walstream import Walstream

SPARK = {"master": MASTER, "insecure": not LOCAL, "min_size": "0"}
FILLED = (
    "ALTER TABLE load ALTER note SET STORAGE EXTERNAL;"
    # those that the load changes, with values that its updates leave out, and others
    " INSERT INTO load SELECT w * 1000000 + i, 0, repeat(md5(i::text), 100)"
    " FROM generate_series(0, 3) AS w, generate_series(0, 499) AS i;"
    " INSERT INTO load SELECT -i, i, 'note ' || i FROM generate_series(1, 5000) AS i;"
    " CREATE TABLE small (id int PRIMARY KEY, v text);"
    " INSERT INTO small SELECT i, i FROM generate_series(1, 10) AS i"
)


# enough to be amid them
MORE = "INSERT INTO load SELECT -i, i, 'note ' || i FROM generate_series(5001, 60000) i"


def filled(
    database: Database, runs: Runs, *, spark: bool = True, **source: Any
) -> Walstream:
    """Fill the tables; make a walstream that begins with what is there.

    Without `spark` as it is by itself: they are small, and the driver reads them.
    """
    database.execute(TABLE)
    database.execute(FILLED)
    return runs(
        database.dsn,
        source={"backfill": "initial", **source},
        sink={"topic_partitions": 3},
        top={"spark": SPARK if spark else {}},
    )


def load(database: Database, seed: int) -> Load:
    """Change the table, at a pace that leaves room for a JVM."""
    return Load(database.dsn, seed=seed, writers=2, pause_s=0.02)


@contextmanager
def held(database: Database, table: str) -> Iterator[None]:
    """Let the tasks that read the table now go on, and no later one begin."""
    reading(database, table)
    with psycopg.connect(database.dsn) as session:
        # behind the chunks that are read now, and in front of all others
        session.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
        yield
        session.rollback()


def reading(database: Database, table: str) -> None:
    """Wait until a task reads the table."""
    asked = (
        "SELECT FROM pg_locks JOIN pg_stat_activity USING (pid)"
        " WHERE relation = %s::regclass AND mode = 'AccessShareLock' AND granted"
        " AND query LIKE 'COPY (%%'"
    )
    with psycopg.connect(database.dsn, autocommit=True) as session:
        wait_until(lambda: session.execute(asked, (table,)).fetchall(), 120, "it reads")


def settled(database: Database, walstream: Walstream, reader: Reader) -> list[Record]:
    """Have everything delivered that was written until now, and read it."""
    walstream.streaming()
    database.execute("INSERT INTO small SELECT max(id) + 1, 'the last' FROM small")
    ((last,),) = database.fetch("SELECT max(id) FROM small")
    reader.until(
        lambda records: any(
            (r.op.table.name, r.new.get("id")) == ("small", str(last)) for r in records
        ),
        150,
    )
    assert walstream.terminate() == 0, walstream.text
    return reader.read()


def agree(database: Database, records: list[Record]) -> None:
    expected = rows_of(database, "public.load", "public.small")
    assert by_position(records) == expected
    assert by_arrival(records) == expected
    in_place(records)
