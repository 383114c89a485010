"""The rows that were there before come first, and agree with the stream."""

from collections.abc import Iterator

import pytest

from tests.fix_postgres import Database
from tests.fix_walstream import Runs
from tests.folding import by_arrival, by_position, in_place, rows_of
from tests.load import TABLE, Load
from tests.reading import Reader, Record
from tests.running import Walstream
from walstream.op import Kind

SPARK = {"master": "local[2,4]"}
FILLED = (
    "ALTER TABLE load ALTER note SET STORAGE EXTERNAL;"
    # those that the load changes, with values that its updates leave out, and others
    " INSERT INTO load SELECT w * 1000000 + i, 0, repeat(md5(i::text), 100)"
    " FROM generate_series(0, 3) AS w, generate_series(0, 499) AS i;"
    " INSERT INTO load SELECT -i, i, 'note ' || i FROM generate_series(1, 5000) AS i;"
    " CREATE TABLE small (id int PRIMARY KEY, v text);"
    " INSERT INTO small SELECT i, i FROM generate_series(1, 10) AS i"
)


@pytest.fixture
def walstream(database: Database, runs: Runs) -> Iterator[Walstream]:
    database.execute(TABLE)
    database.execute(FILLED)
    made = runs(
        database.dsn,
        source={"backfill": "initial"},
        sink={"topic_partitions": 3},
        top={"spark": SPARK},
    )
    yield made
    made.close()


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


def test_rows_of_before_and_changes_of_meanwhile_are_the_table(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    with Load(database.dsn, seed=3, writers=2, pause_s=0.02) as load:
        walstream.start().until("backfill ended", 60)
        walstream.streaming()
        load.wait_for_more()
    records = settled(database, walstream, reader)
    agree(database, records)
    snapshot = [record for record in records if record.op.snapshot]
    assert {record.kind for record in snapshot} == {Kind.INSERT}
    assert len({record.op.lsn for record in snapshot}) == 1
    assert len({record.name for record in snapshot}) == len(snapshot) > 6000


def test_only_backfills_and_ends(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.source = {"backfill": "only"}
    assert walstream.start().wait(90) == 0
    records = reader.read()
    assert by_position(records) == rows_of(database, "public.load", "public.small")
    assert not database.fetch("SELECT FROM pg_replication_slots")
    assert walstream.start().wait(30) == 0
    assert walstream.said("backfilled before")
    assert len(reader.read()) == len(records)
