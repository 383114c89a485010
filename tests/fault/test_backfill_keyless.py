"""A table without a row key, whose backfill is cut short: no row is there twice."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.backfilling import SPARK, held, reading, settled
from tests.fix_postgres import Database, PostgresServer, temporary_database
from tests.fix_walstream import Runs
from tests.reading import Reader, Record
from tests.running import Walstream
from tests.waiting import wait_until
from walstream.backfill import kept
from walstream.op import Kind
from walstream.positions import LmdbPositions

pytestmark = [pytest.mark.fault, pytest.mark.fault_long]

# the key of `small` is what `settled` looks for
FILL = (
    "CREATE TABLE small (id int PRIMARY KEY, v text);"
    "INSERT INTO small VALUES (1, '');"
    "CREATE TABLE bare (v int, note text);"
    "INSERT INTO bare SELECT i, repeat('x', 1800)"
    " FROM generate_series(1, 30000) AS i"
)


@pytest.fixture
def database(newest_postgres: PostgresServer) -> Iterator[Database]:
    with temporary_database(newest_postgres) as made:
        made.execute(FILL)
        yield made


@pytest.fixture
def walstream(database: Database, runs: Runs) -> Walstream:
    return runs(
        database.dsn,
        source={"backfill": "initial"},
        sink={"topic_partitions": 3},
        top={"spark": {**SPARK, "master": "local[1]"}},
    )


def left(walstream: Walstream) -> list[str]:
    """Name the tables that are not finished, as they are kept."""
    with LmdbPositions.beside(walstream.state) as positions:
        record = kept.read(positions) if positions else None
        return list(record.tables) if record else []


@contextmanager
def amid_rows(
    database: Database, walstream: Walstream, reader: Reader
) -> Iterator[None]:
    """Hold it where rows of the table are there, and not all of them."""
    with held(database, "bare"):
        reader.until(lambda records: any(map(_bare, records)), 90)
        assert "public.bare" in left(walstream)
        yield


def _bare(record: Record) -> bool:
    return record.op.table.name == "bare"


def folded(records: list[Record]) -> Counter[tuple[str, int]]:
    """Fold as a consumer that drops what a chunk repeats; count each row."""
    rows: Counter[tuple[str, int]] = Counter()
    by_partition: dict[int, Counter[str]] = {}
    taken: dict[tuple[int, int, int], int] = {}
    for record in sorted(records, key=lambda one: (one.partition, one.offset)):
        if not _bare(record):
            continue
        mine = by_partition.setdefault(record.partition, Counter())
        if record.op.snapshot:
            chunk = record.partition, record.op.lsn, record.op.seq_id >> 32
            index = record.op.seq_id & 0xFFFFFFFF
            if index <= taken.get(chunk, -1):
                continue
            taken[chunk] = index
        if record.kind is Kind.TRUNCATE:
            mine.clear()
        else:
            mine[record.new["v"]] += 1
    for mine in by_partition.values():
        rows.update({("bare", int(v)): count for v, count in mine.items()})
    return rows


def agree(database: Database, records: list[Record]) -> None:
    stored = Counter(("bare", v) for (v,) in database.fetch("SELECT v FROM bare"))
    found = folded(records)
    assert found.total() == stored.total()
    assert found == stored


def test_killed_amid_rows_it_has_no_row_twice(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.start()
    with amid_rows(database, walstream, reader):
        walstream.kill()
    assert "public.bare" in left(walstream)
    database.execute("INSERT INTO bare VALUES (-1, 'while it was down')")
    walstream.start().until("backfill ended", 120)
    agree(database, settled(database, walstream, reader))


def test_killed_again_while_it_is_emptied_it_has_no_row_twice(
    database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.start()
    with amid_rows(database, walstream, reader):
        walstream.kill()
    for step in ("catching up", "backfill begins"):
        walstream.start().until(step, 90).kill()
        assert "public.bare" in left(walstream)
    walstream.start().until("backfill ended", 120)
    agree(database, settled(database, walstream, reader))


@pytest.mark.parametrize(
    "what", ["VACUUM FULL bare", "TRUNCATE bare; INSERT INTO bare VALUES (-1, 'anew')"]
)
def test_rewritten_meanwhile_it_has_no_row_twice(
    what: str, database: Database, walstream: Walstream, reader: Reader
) -> None:
    walstream.start()
    reading(database, "bare")
    database.execute(what)  # behind the chunk that is read, and in front of the next
    wait_until(lambda: walstream.said("meanwhile"), 60, "the table is begun anew")
    walstream.until("backfill ended", 120)
    agree(database, settled(database, walstream, reader))
