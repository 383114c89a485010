"""A table with rows, the walstream that backfills it, and the claim that both agree."""

from typing import Any

from tests.fix_postgres import Database
from tests.fix_spark import MASTER
from tests.fix_walstream import Runs
from tests.folding import by_arrival, by_position, in_place, rows_of
from tests.load import TABLE, Load
from tests.reading import Reader, Record
from tests.running import Walstream

SPARK = {"master": MASTER}
FILLED = (
    "ALTER TABLE load ALTER note SET STORAGE EXTERNAL;"
    # those that the load changes, with values that its updates leave out, and others
    " INSERT INTO load SELECT w * 1000000 + i, 0, repeat(md5(i::text), 100)"
    " FROM generate_series(0, 3) AS w, generate_series(0, 499) AS i;"
    " INSERT INTO load SELECT -i, i, 'note ' || i FROM generate_series(1, 5000) AS i;"
    " CREATE TABLE small (id int PRIMARY KEY, v text);"
    " INSERT INTO small SELECT i, i FROM generate_series(1, 10) AS i"
)


def filled(database: Database, runs: Runs, **source: Any) -> Walstream:
    """Fill the tables; make a walstream that begins with what is there."""
    database.execute(TABLE)
    database.execute(FILLED)
    return runs(
        database.dsn,
        source={"backfill": "initial", **source},
        sink={"topic_partitions": 3},
        top={"spark": SPARK},
    )


def load(database: Database, seed: int) -> Load:
    """Change the table, at a pace that leaves room for a JVM."""
    return Load(database.dsn, seed=seed, writers=2, pause_s=0.02)


def settled(database: Database, walstream: Walstream, reader: Reader) -> list[Record]:
    """Have everything delivered that was written until now, and read it."""
    walstream.streaming()
    database.execute("INSERT INTO small SELECT max(id) + 1, 'the last' FROM small")
    ((last,),) = database.fetch("SELECT max(id) FROM small")
    reader.until(
        lambda records: any(
            (r.op.table.name, r.new.get("id")) == ("small", str(last)) for r in records
        ),
        90,
    )
    assert walstream.terminate() == 0, walstream.text
    return reader.read()


def agree(database: Database, records: list[Record]) -> None:
    expected = rows_of(database, "public.load", "public.small")
    assert by_position(records) == expected
    assert by_arrival(records) == expected
    in_place(records)
