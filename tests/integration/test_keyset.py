"""Reading a table by its key, some rows at a time, with real servers and no stream."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import (
    Database,
    PostgresServer,
    temporary_database,
)
from walstream.errors import ConfigError, PermissionLacking
from walstream.lsn import parse
from walstream.sources.postgres.backfill.chunk import TableRewritten
from walstream.sources.postgres.backfill.condition import UnfitCondition
from walstream.sources.postgres.backfill.reader import SnapshotDatabase as Where
from walstream.sources.postgres.incremental.chunk import KeyChunk
from walstream.sources.postgres.incremental.keyset_reader import KeysetReader


def reader(database: Database, **dsn: str) -> KeysetReader:
    where = Where(make_conninfo(database.dsn, **dsn))
    return KeysetReader(where, lambda: ["walstream"])


def chunks(database: Database, name: str, most: int = 3) -> Iterator[KeyChunk]:
    """Read all, chunk by chunk."""
    keyset = reader(database)
    after, key = None, tuple[str, ...]()
    while True:
        chunk = keyset.read(name, after, key, most)
        yield chunk
        if chunk.last:
            return
        after, key = chunk.end(len(chunk.rows)), chunk.names


def rows(database: Database, name: str, most: int = 3) -> list[tuple[Any, ...]]:
    return [tuple(row) for chunk in chunks(database, name, most) for row in chunk.rows]


KEYS = {
    "an index of another order than the type's": (
        (
            "(k text NOT NULL);"
            "CREATE UNIQUE INDEX other ON keyed (k text_pattern_ops);"
            "ALTER TABLE keyed REPLICA IDENTITY USING INDEX other"
        ),
        "SELECT chr(60 + i) FROM generate_series(1, 60) i",
    ),
    "an enumeration, a list, a range": (
        "(k mood, a mood[], r int4range, PRIMARY KEY (k, a, r))",
        (
            "SELECT (ARRAY['x', 'b', 'a'])[i % 3 + 1]::mood, '{b,a}'::mood[],"
            " int4range(1, i) FROM generate_series(2, 12) i"
        ),
    ),
    "order by the index": (
        "(a int, b text, v text, PRIMARY KEY (b, a))",
        "SELECT i % 5, 'k' || i / 5, 'v' || i FROM generate_series(1, 40) i",
    ),
    "texts with what SQL quotes": (
        "(k text PRIMARY KEY)",
        r"SELECT unnest(ARRAY['', 'it''s', E'back\\slash', E'tab\t', '\N', 'é', '%s'])",
    ),
    "floats": (
        "(k float8 PRIMARY KEY)",
        "SELECT unnest(ARRAY['NaN', 'Infinity', '-Infinity', 0.1::float8, 1e300, -5])",
    ),
    "bytes": (
        "(k bytea PRIMARY KEY, n int)",
        "SELECT decode(md5(i::text), 'hex'), i FROM generate_series(1, 20) i",
    ),
    "a composite type, alone": (
        "(k apart.pair PRIMARY KEY, n int)",
        "SELECT ROW(i % 4, 'x,' || i)::apart.pair, i FROM generate_series(1, 20) i",
    ),
    "a domain of a composite type, a list of it, another": (
        "(n int, k apart.paired, a apart.pair[], PRIMARY KEY (n, k, a))",
        (
            "SELECT i % 3, ROW(i, NULL)::apart.pair, ARRAY[ROW(1, i)::apart.pair]"
            " FROM generate_series(1, 20) i"
        ),
    ),
    "fixed length": (
        "(k char(5), d date, PRIMARY KEY (k, d))",
        "SELECT 'x' || i % 3, date '2000-01-01' - i FROM generate_series(1, 20) i",
    ),
    "what the index only includes": (
        (
            "(b int, a int, PRIMARY KEY (a) INCLUDE (b));"
            "ALTER TABLE keyed REPLICA IDENTITY FULL"
        ),
        "SELECT nullif(i % 4, 0), i FROM generate_series(1, 20) i",
    ),
    "another collation than the column's": (
        (
            '(k text COLLATE "C" NOT NULL);'
            'CREATE UNIQUE INDEX other ON keyed (k COLLATE "POSIX");'
            "ALTER TABLE keyed REPLICA IDENTITY USING INDEX other"
        ),
        "SELECT chr(60 + i) FROM generate_series(1, 60) i",
    ),
}


TEMPORAL = {
    "a multirange": (
        "(id int, m int4multirange, PRIMARY KEY (id, m WITHOUT OVERLAPS))",
        (
            "SELECT i % 4, int4multirange(int4range(i, i + 1),"
            " int4range(i + 100, i + 101)) FROM generate_series(1, 60) i"
        ),
    ),
    "a range, a text, an enumeration": (
        ("(t varchar(9), m mood, r daterange, PRIMARY KEY (t, m, r WITHOUT OVERLAPS))"),
        (
            "SELECT 'x' || i % 2, 'x', daterange(date '2000-01-01' - i,"
            " date '2000-01-01' - i + 1) FROM generate_series(1, 40) i"
        ),
    ),
}


@pytest.mark.parametrize("kind", TEMPORAL)
def test_every_row_of_a_temporal_key_comes_once(
    postgres18: PostgresServer, kind: str
) -> None:
    with temporary_database(postgres18) as database:
        database.execute("CREATE EXTENSION btree_gist")
        _every_row_comes_once(database, *TEMPORAL[kind])


@pytest.mark.parametrize("kind", KEYS)
def test_every_row_comes_once(database: Database, kind: str) -> None:
    _every_row_comes_once(database, *KEYS[kind])


def _every_row_comes_once(database: Database, columns: str, query: str) -> None:
    database.execute(
        "CREATE TYPE mood AS ENUM ('x', 'b', 'a');"
        "CREATE SCHEMA apart; CREATE TYPE apart.pair AS (a int, b text);"
        "CREATE DOMAIN apart.paired AS apart.pair"
    )
    database.execute(f"CREATE TABLE keyed {columns}")
    database.execute(f"INSERT INTO keyed {query}")
    database.execute("CREATE PUBLICATION walstream FOR TABLE keyed")
    with psycopg.connect(database.dsn) as connection, connection.cursor() as cursor:
        connection.execute("SET extra_float_digits = 3")
        with cursor.copy("COPY keyed TO STDOUT") as copy:
            expected = sorted(copy.rows(), key=str)
    assert sorted(rows(database, "public.keyed"), key=str) == expected


def test_operators_that_are_out_of_sight_are_found(database: Database) -> None:
    database.execute(
        "CREATE SCHEMA apart; CREATE EXTENSION citext SCHEMA apart;"
        "CREATE TABLE keyed (k apart.citext PRIMARY KEY);"
        "INSERT INTO keyed SELECT unnest(ARRAY['a', 'B', 'c', 'D', 'e', 'F', 'g']);"
        "CREATE PUBLICATION walstream FOR TABLE keyed"
    )
    found = [row[0] for row in rows(database, "public.keyed", 2)]
    assert found == ["a", "B", "c", "D", "e", "F", "g"]


def test_a_key_of_an_extensions_type_and_others_is_read_in_order(
    database: Database,
) -> None:
    database.execute(
        "CREATE SCHEMA apart; CREATE EXTENSION citext SCHEMA apart;"
        "CREATE TABLE keyed (n int, k apart.citext, d date, PRIMARY KEY (n, k, d));"
        "INSERT INTO keyed SELECT i % 3, chr(65 + i % 5 + i % 2 * 32),"
        " date '2000-01-01' + i FROM generate_series(1, 40) i;"
        "CREATE PUBLICATION walstream FOR TABLE keyed"
    )
    wanted = database.fetch(
        "SELECT n::text, k::text, d::text FROM keyed t ORDER BY t.n, t.k, t.d"
    )
    for most in (1, 3, 40):
        assert rows(database, "public.keyed", most) == wanted


def test_a_key_that_a_cast_would_compare_otherwise_is_refused(
    database: Database,
) -> None:
    """By its text `b` came before `a`; and the cast's owner had his function run."""
    database.execute(
        "CREATE TYPE mood AS ENUM ('b', 'a');"
        "CREATE TABLE keyed (n int, k mood, PRIMARY KEY (n, k));"
        "INSERT INTO keyed SELECT i, 'a' FROM generate_series(1, 5) i;"
        "CREATE PUBLICATION walstream FOR TABLE keyed"
    )
    assert len(rows(database, "public.keyed")) == 5
    database.execute("CREATE CAST (mood AS text) WITH INOUT AS IMPLICIT")
    with pytest.raises(ConfigError, match=r"type of k, of the key .* implicit cast"):
        rows(database, "public.keyed")


def test_a_partition_root_is_read_as_one(database: Database) -> None:
    database.execute(
        "CREATE TABLE root (id int, kind text, v text, PRIMARY KEY (kind, id))"
        " PARTITION BY LIST (kind);"
        "CREATE TABLE leaf_a (v text, gone int, kind text NOT NULL, id int NOT NULL);"
        "ALTER TABLE leaf_a DROP gone;"
        "ALTER TABLE root ATTACH PARTITION leaf_a FOR VALUES IN ('a');"
        "CREATE TABLE leaf_b PARTITION OF root FOR VALUES IN ('b');"
        "INSERT INTO root SELECT i, chr(97 + i % 2), 'v' || i"
        " FROM generate_series(1, 11) i;"
        "CREATE TABLE bare (id int PRIMARY KEY) PARTITION BY LIST (id);"
        "CREATE PUBLICATION walstream FOR TABLE root, bare"
        " WITH (publish_via_partition_root = true)"
    )
    query = "SELECT id::text, kind, v FROM root ORDER BY kind, root.id"
    expected = database.fetch(query)
    assert rows(database, "public.root", 4) == expected
    assert rows(database, "public.bare") == []


def test_what_the_publication_keeps_back_stays_back(database: Database) -> None:
    database.execute(
        "CREATE TABLE listed (id int PRIMARY KEY, gone int, open text, closed text);"
        "ALTER TABLE listed DROP gone;"
        "INSERT INTO listed SELECT i, 'o', 'c' FROM generate_series(1, 20) i;"
        "CREATE PUBLICATION walstream FOR TABLE listed (id, open) WHERE (id > 15)"
    )
    (chunk,) = chunks(database, "public.listed", 10)
    assert chunk.table.columns == ("id", "open")
    assert chunk.rows == [[str(number), "o"] for number in range(16, 21)]


def test_it_says_what_it_saw_and_has_the_server_write_behind_that(
    database: Database,
) -> None:
    database.execute(
        "CREATE TABLE keyed (id int PRIMARY KEY);"
        "CREATE PUBLICATION walstream FOR TABLE keyed"
    )
    keyset = reader(database)
    with psycopg.connect(database.dsn) as open_one:
        (xid,) = open_one.execute("SELECT pg_current_xact_id()::text").fetchone() or ()
        open_one.execute("INSERT INTO keyed VALUES (1)")
        mark = keyset.mark()
        chunk = keyset.read("public.keyed", None, (), 5)
        assert (chunk.rows, chunk.last) == ([], True)
        assert mark > int(xid)
        assert not chunk.seen.sees(int(xid) % 2**32)
        assert not keyset.seen(0.0).sees_all_below(mark)
        assert f"pid {open_one.info.backend_pid} of" in keyset.blockers()
    chunk = keyset.read("public.keyed", None, (), 5)
    assert chunk.rows == [["1"]]
    assert chunk.seen.sees(int(xid) % 2**32)
    ((flushed,),) = database.fetch("SELECT pg_current_wal_flush_lsn()::text")
    assert parse(flushed) > chunk.high


def test_a_large_chunk_is_cut_and_goes_on(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "walstream.sources.postgres.incremental.keyset_reader._MOST_BYTES", 100_000
    )
    database.execute(
        "CREATE TABLE keyed (id int PRIMARY KEY, v text);"
        "INSERT INTO keyed SELECT i, repeat('x', 1000) FROM generate_series(1, 9000) i;"
        "CREATE PUBLICATION walstream FOR TABLE keyed"
    )
    found = list(chunks(database, "public.keyed", 9000))
    assert len(found) > 2
    ids = [int(row[0] or 0) for chunk in found for row in chunk.rows]
    assert ids == list(range(1, 9001))


def test_rows_are_read_from_the_first_under_another_key(database: Database) -> None:
    database.execute(
        "CREATE TABLE keyed (id int PRIMARY KEY, other text);"
        "INSERT INTO keyed VALUES (1, 'x'), (2, 'y');"
        "CREATE PUBLICATION walstream FOR TABLE keyed"
    )
    keyset = reader(database)
    first = keyset.read("public.keyed", None, (), 1)
    assert keyset.read("public.keyed", ("1",), first.names, 5).rows == [["2", "y"]]
    # as an earlier version kept it: what ordered the key is not known
    assert len(keyset.read("public.keyed", ("1",), ("id",), 5).rows) == 2
    for after, key in ((("x",), ("other",)), (("x",), first.names)):  # no number
        assert len(keyset.read("public.keyed", after, key, 5).rows) == 2


ANOTHER_ORDER = {
    "type": ("int", "ALTER TABLE keyed ALTER k TYPE text"),
    "collation": (
        'text COLLATE "C"',
        'ALTER TABLE keyed ALTER k TYPE text COLLATE "POSIX"',
    ),
    "collation of the index": (
        'text COLLATE "C"',
        (
            'CREATE UNIQUE INDEX other ON keyed (k COLLATE "POSIX");'
            "ALTER TABLE keyed REPLICA IDENTITY USING INDEX other"
        ),
    ),
    "operators": (
        "text",
        (
            "CREATE UNIQUE INDEX other ON keyed (k text_pattern_ops);"
            "ALTER TABLE keyed REPLICA IDENTITY USING INDEX other"
        ),
    ),
    "a column of the same name": (
        "int",
        (
            "ALTER TABLE keyed DROP k;"
            "ALTER TABLE keyed ADD k int GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
        ),
    ),
}


@pytest.mark.parametrize("kind", ANOTHER_ORDER)
def test_rows_are_read_from_the_first_in_another_order(
    database: Database, kind: str
) -> None:
    before, change = ANOTHER_ORDER[kind]
    database.execute(
        f"CREATE TABLE keyed (k {before} PRIMARY KEY, n int);"
        "CREATE PUBLICATION walstream FOR TABLE keyed"
    )
    database.execute("INSERT INTO keyed SELECT n, n FROM generate_series(1, 4) n")
    keyset = reader(database)
    chunk = keyset.read("public.keyed", None, (), 2)
    after, key = chunk.end(2), chunk.names
    assert len(keyset.read("public.keyed", after, key, 9).rows) == 2
    database.execute(change)
    assert len(keyset.read("public.keyed", after, key, 9).rows) == 4


def test_a_table_that_is_rewritten_meanwhile_is_not_believed(
    database: Database,
) -> None:
    database.execute(
        "CREATE TABLE keyed (id int PRIMARY KEY);"
        "INSERT INTO keyed VALUES (1); CREATE PUBLICATION walstream FOR TABLE keyed"
    )
    with held(database), pytest.raises(TableRewritten, match="rewritten, truncated"):
        reader(database).read("public.keyed", None, (), 5)


SWAPS = {
    "a table": "ALTER TABLE keyed RENAME TO former; ALTER TABLE other RENAME TO keyed",
    "a column": "ALTER TABLE keyed RENAME v TO former; ALTER TABLE keyed ADD v text",
    "a filter's column": (
        "ALTER TABLE keyed RENAME f TO former; ALTER TABLE keyed ADD f int DEFAULT 1"
    ),
}


@pytest.mark.parametrize("kind", SWAPS)
def test_what_takes_the_name_of_what_is_read_is_not_believed(
    database: Database, kind: str
) -> None:
    """Another table, which nobody published, or another column."""
    database.execute(
        "CREATE TABLE keyed (id int PRIMARY KEY, v text, f int);"
        "CREATE TABLE other (LIKE keyed INCLUDING ALL);"
        "INSERT INTO keyed VALUES (1, 'x', 1); INSERT INTO other VALUES (2, 'y', 1);"
        "CREATE PUBLICATION walstream FOR TABLE keyed (id, v)"
    )
    where = "f > 0" if "filter" in kind else ""
    keyset = reader(database)
    assert keyset.read("public.keyed", None, (), 5, where).rows == [["1", "x"]]
    with held(database, SWAPS[kind]), pytest.raises(TableRewritten, match="renamed"):
        keyset.read("public.keyed", None, (), 5, where)


def test_another_table_of_the_name_is_read_from_its_first_row(
    database: Database,
) -> None:
    create = (
        "CREATE TABLE keyed (id int PRIMARY KEY);"
        "INSERT INTO keyed SELECT generate_series(1, 4)"
    )
    database.execute(f"{create}; CREATE PUBLICATION walstream FOR ALL TABLES")
    keyset = reader(database)
    first = keyset.read("public.keyed", None, (), 2)
    after, key = first.end(2), first.names
    assert len(keyset.read("public.keyed", after, key, 9).rows) == 2
    # as an earlier version kept it: which table it was is not known
    assert len(keyset.read("public.keyed", after, key[:-1], 9).rows) == 2
    database.execute(f"DROP TABLE keyed; {create}")
    assert len(keyset.read("public.keyed", after, key, 9).rows) == 4


@contextmanager
def held(database: Database, change: str = "TRUNCATE keyed") -> Iterator[None]:
    """Change a table after the next snapshot was taken, before it is read."""
    with psycopg.connect(database.dsn) as changing:
        changing.execute("LOCK keyed IN ACCESS EXCLUSIVE MODE")
        waits = (
            "SELECT FROM pg_locks WHERE NOT granted AND relation = 'keyed'::regclass"
        )

        def make() -> None:
            wait_until(lambda: database.fetch(waits), 10, "it is about to be read")
            changing.execute(change.encode())
            changing.commit()

        thread = threading.Thread(target=make)
        thread.start()
        yield
        thread.join(30)


def test_what_keeps_rows_from_us_is_said(database: Database) -> None:
    role = f"reader_{database.name}"
    database.execute(
        "CREATE TABLE bare (id int); CREATE TABLE other (id int PRIMARY KEY);"
        "CREATE TABLE keyed (id int PRIMARY KEY);"
        "CREATE PUBLICATION walstream FOR TABLE keyed, bare;"
        f"CREATE ROLE {role} LOGIN"
    )
    keyset = reader(database)
    try:
        for name, what in (
            ("public.none", "there is no table"),
            ("public.bare", "has no row key"),
            ("public.other", "is not in publication"),
        ):
            with pytest.raises(ConfigError, match=what):
                keyset.read(name, None, (), 5)
        with pytest.raises(PermissionLacking, match="may not read") as denied:
            reader(database, user=role).read("public.keyed", None, (), 5)
        assert denied.value.repair.sql.startswith('GRANT SELECT ON "public"."keyed"')
    finally:
        database.execute(f"DROP ROLE {role}")


def test_a_row_that_a_condition_fails_at_ends_the_read_without_its_value(
    database: Database,
) -> None:
    """From the first row on it would be read again and again, and never end."""
    database.execute(
        "CREATE TABLE keyed (k int PRIMARY KEY, v text);"
        "INSERT INTO keyed SELECT i, i FROM generate_series(1, 3) i;"
        "INSERT INTO keyed VALUES (4, 'se\"cret');"
        "CREATE PUBLICATION walstream FOR TABLE keyed"
    )
    keyset = reader(database)
    first = keyset.read("public.keyed", None, (), 2, "v::int > 0")
    assert first.rows == [["1", "1"], ["2", "2"]]
    with pytest.raises(UnfitCondition, match="invalid input syntax") as stop:
        keyset.read("public.keyed", first.end(2), first.names, 2, "v::int > 0")
    assert "secret" not in str(stop.value).replace('"', "")


def test_a_condition_whose_column_is_gone_is_blamed(database: Database) -> None:
    database.execute(
        "CREATE TABLE keyed (k int PRIMARY KEY, v text, w text);"
        "CREATE PUBLICATION walstream FOR TABLE keyed (k, v)"
    )
    keyset = reader(database)
    assert keyset.read("public.keyed", None, (), 2, "w <> ''").last
    database.execute("ALTER TABLE keyed DROP w")
    with pytest.raises(UnfitCondition, match='column "w" does not exist') as stop:
        keyset.read("public.keyed", None, (), 2, "w <> ''")
    assert not stop.value.retryable
