"""A table without a row key, whose backfill is cut short: no row is there twice."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader, Record
from tests.support.programs.backfill import SPARK, held, reading, settled
from tests.support.programs.walstream import Walstream
from walstream.op import Kind
from walstream.sources.postgres.backfill import stored_progress
from walstream.state.store import LmdbStore

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
    with LmdbStore.open_read_only(walstream.state) as positions:
        record = stored_progress.read(positions) if positions else None
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


# row 20000 of the foreign leaf waits for who holds the lock; that is not pushed down
FOREIGN = """
CREATE TABLE small (id int PRIMARY KEY, v text);
INSERT INTO small VALUES (1, '');
CREATE TABLE bare (v int, note text) PARTITION BY RANGE (v);
CREATE TABLE bare_here PARTITION OF bare FOR VALUES FROM (0) TO (10001);
CREATE SCHEMA far;
CREATE TABLE far.stored (v int, note text);
INSERT INTO far.stored
SELECT i, repeat('x', 200) FROM generate_series(10001, 30000) AS i;
CREATE VIEW far.bare AS SELECT v, note FROM far.stored
 WHERE v <> 20000 OR pg_advisory_xact_lock_shared(7) IS NOT NULL;
CREATE EXTENSION postgres_fdw;
CREATE SERVER there FOREIGN DATA WRAPPER postgres_fdw
OPTIONS (host '{host}', port '{port}', dbname '{dbname}');
CREATE USER MAPPING FOR CURRENT_USER SERVER there OPTIONS (user '{user}');
CREATE FOREIGN TABLE bare_there PARTITION OF bare FOR VALUES FROM (10001) TO (30001)
SERVER there OPTIONS (schema_name 'far', table_name 'bare');
INSERT INTO bare SELECT i, 'here' FROM generate_series(1, 10000) AS i;
"""


def test_a_foreign_leaf_that_is_read_again_has_no_row_twice(
    newest_postgres: PostgresServer, runs: Runs, reader: Reader
) -> None:
    """Its server's session ends amid its rows; the root's other leaf is there once."""
    with temporary_database(newest_postgres) as database:
        database.execute(FOREIGN.format(**conninfo_to_dict(database.dsn)))
        walstream = runs(
            database.dsn,
            source={"backfill": "initial", "tables": ["public.bare", "public.small"]},
            sink={"topic_partitions": 3},
            top={"spark": {**SPARK, "master": "local[2]"}},
        )
        with psycopg.connect(database.dsn) as session:
            session.execute("SELECT pg_advisory_lock(7)")
            walstream.start()
            reader.until(
                lambda records: any(
                    _bare(one) and int(one.new["v"]) > 10000 for one in records
                ),
                120,
            )
            ended = session.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE query LIKE 'COPY (%bare_there%'"
            )
            assert ended.rowcount == 1
        walstream.until("backfill ended", 120)
        records = settled(database, walstream, reader)
        agree(database, records)
        assert any(one.kind is Kind.TRUNCATE for one in records if _bare(one))
