"""PostgreSQL through SQLAlchemy: tables, values, refusals, by both of its drivers."""

import datetime as dt
import gc
import logging
import warnings
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.support.fixtures.postgres import Database as Home
from tests.support.fixtures.postgres import OwnPostgres
from tests.support.programs.table_read import looked, postgres_url, read
from walstream.errors import ConfigError, PermissionLacking, Transient, WalstreamError
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.query import ahead, newest, oldest, rows
from walstream.testing.servers.port import free_port

DIGITS = '{"a": ' + "9" * 5000 + "}"
ID = "91b1a5fb-e5e3-11f1-9037-02fc00000001"
DATE, MOMENT = dt.date(2026, 1, 2), dt.datetime(2026, 7, 1, 8, tzinfo=dt.UTC)

# type, what is inserted, what is read
VALUES: list[tuple[str, str, object]] = [
    ("smallint", "-5", -5),
    ("bigint", "9223372036854775807", (1 << 63) - 1),
    ("oid", "4294967295", (1 << 32) - 1),
    ("numeric(10,3)", "1.5", Decimal("1.500")),
    ("numeric", "1" + "0" * 200, Decimal("1" + "0" * 200)),
    ("numeric", "Infinity", Decimal("Infinity")),
    ("real", "1.1", 1.1),
    ("float8", "-Infinity", float("-inf")),
    ("money", "1.5", "$1.50"),
    ("boolean", "t", True),
    ("text", "é😀", "é😀"),
    ('text COLLATE "C"', "é", "é"),
    ("char(3)", "é", "é  "),
    ('"char"', "x", "x"),
    ("bytea", r"\x00ff", b"\x00\xff"),
    ("uuid", ID, UUID(ID)),
    ("date", "2026-01-02", DATE),
    ("date", "infinity", "infinity"),
    ("date", "-infinity", "-infinity"),
    ("date", "0044-03-15 BC", "0044-03-15 BC"),
    ("date", "20000-01-01", "20000-01-01"),
    ("time", "24:00", "24:00:00"),
    ("time", "01:02:03.5", dt.time(1, 2, 3, 500_000)),
    ("timetz", "24:00+00", "24:00:00+00"),
    ("timestamp", "-infinity", "-infinity"),
    ("timestamp", "10000-01-01", "10000-01-01 00:00:00"),
    ("timestamptz", "2026-07-01 10:00+02", MOMENT),
    ("timestamptz", "infinity", "infinity"),
    ("timestamptz", "0001-01-01 00:00+00 BC", "0001-01-01 00:00:00+00 BC"),
    ("interval", "2 days 03:00", dt.timedelta(days=2, hours=3)),
    ("interval", "1 mon 2 days", "1 mon 2 days"),
    ("interval", "178000000 years", "178000000 years"),
    ("json", '{"a": 1.5, "a": [null]}', {"a": [None]}),
    ("jsonb", "[1]", [1]),
    ("json", DIGITS, DIGITS),
    ("parsed", '{"a": 1}', {"a": 1}),
    ("day", "infinity", "infinity"),
    ("mood", "sad", "sad"),
    ("mood[]", "{sad,NULL}", ["sad", None]),
    ("int[]", "{{1,2},{3,4}}", [[1, 2], [3, 4]]),
    ("date[]", "{infinity,2026-01-02}", ["infinity", DATE]),
    ("interval[]", "{1 mon}", ["1 mon"]),
    ("jsonb[]", r'{"{\"a\": 1}",NULL}', [{"a": 1}, None]),
    ("daterange", "[2026-01-01,infinity)", "[2026-01-01,infinity)"),
    ("int4multirange", "{[1,3)}", "{[1,3)}"),
    ("inet", "10.0.0.1/24", "10.0.0.1/24"),
    ("cidr", "10.0.0.0/8", "10.0.0.0/8"),
    ("macaddr", "08:00:2b:01:02:03", "08:00:2b:01:02:03"),
    ("bit(3)", "101", "101"),
    ("point", "(1,2)", "(1,2)"),
    ("tsvector", "b a", "'a' 'b'"),
    ("pair", "(1,x)", "(1,x)"),
    ("pg_lsn", "0/1", "0/1"),
]
TYPES = (
    "CREATE TYPE mood AS ENUM ('sad', 'ok')",
    "CREATE TYPE pair AS (x int, y text)",
    "CREATE DOMAIN day AS date",
    "CREATE DOMAIN parsed AS jsonb",
)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_every_type_is_read_as_the_value_that_it_holds(
    database: Home, driver: str
) -> None:
    for statement in TYPES:
        database.execute(statement)
    columns = ", ".join(f"c{number} {kind}" for number, (kind, *_) in enumerate(VALUES))
    database.execute(f"CREATE TABLE t (id int PRIMARY KEY, {columns})")
    database.execute(f"ALTER DATABASE {database.name} SET timezone = 'Asia/Tokyo'")
    database.execute(f"ALTER DATABASE {database.name} SET datestyle = 'German'")
    database.execute(
        f"INSERT INTO t VALUES (1{', %s' * len(VALUES)})",  # noqa: S608 - our own
        *(given for _, given, _ in VALUES),
    )

    (row,) = read(postgres_url(database.dsn, driver), "t").rows

    for number, (kind, given, value) in enumerate(VALUES):
        found = row[f"c{number}"]
        if kind == "uuid" and driver == "psycopg2":
            found = UUID(str(found))
        assert (found, type(found)) == (value, type(value)), (kind, given)


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_names_are_looked_up_by_the_roles_path_and_printed_without_it(
    database: Home, driver: str
) -> None:
    database.execute("CREATE SCHEMA shop; CREATE SCHEMA elsewhere")
    database.execute("CREATE TYPE shop.mood AS ENUM ('sad')")
    database.execute("CREATE EXTENSION hstore SCHEMA elsewhere")
    database.execute(
        "CREATE TABLE shop.t (id serial PRIMARY KEY, c regclass, m shop.mood, p money,"
        " h elsewhere.hstore)"
    )
    database.execute(
        "INSERT INTO shop.t (c, m, p, h) VALUES ('shop.t', 'sad', '1.5', 'a=>b')"
    )
    for setting in (
        "search_path = elsewhere, shop",
        "quote_all_identifiers = on",
    ):
        database.execute(f"ALTER DATABASE {database.name} SET {setting}")
    url = postgres_url(database.dsn, driver)

    (row,) = read(url, "shop.t").rows

    assert row == {"id": 1, "c": "shop.t", "m": "sad", "p": "$1.50", "h": {"a": "b"}}
    assert read(url, "t").rows == [row]
    assert looked(url, "t").schema == "shop"
    with pytest.raises(ConfigError, match="did you mean t"):
        read(url, "T")


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_pooled_connection_is_left_as_it_was(database: Home, driver: str) -> None:
    """Between two transactions a pooler gives it to the application."""
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    url = postgres_url(database.dsn, driver)
    shape = looked(url, "t")
    asked = (
        "SELECT name, setting FROM pg_catalog.pg_settings WHERE name NOT IN"
        " ('application_name', 'client_encoding', 'transaction_isolation')"
    )
    with Database(url).session() as connection:
        assert newest(connection, shape) is None
        pooled: Any = connection.connection.driver_connection
        with pooled.cursor() as cursor:
            cursor.execute(asked)
            left = dict(cursor.fetchall())
            cursor.execute("INSERT INTO t VALUES (1)")
        pooled.commit()
        assert newest(connection, shape) == 1
    with psycopg.connect(database.dsn) as other:
        assert left == dict(other.execute(asked).fetchall())


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_session_reads_only(database: Home, driver: str) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    url = postgres_url(database.dsn, driver)
    with (
        pytest.raises(WalstreamError, match="25006"),
        Database(url).session() as connection,
    ):
        connection.exec_driver_sql("INSERT INTO public.t VALUES (1)")


@pytest.mark.parametrize(
    ("encoding", "note"), [("SQL_ASCII", r"a\x81é"), ("WIN1252", r"a\x81Ã©")]
)
def test_text_that_is_none_of_its_encoding_is_read(
    database: Home, encoding: str, note: str
) -> None:
    """0x81 is no UTF-8, and nothing in WIN1252."""
    home = Home(database.server, f"{database.name}_other")
    database.execute(
        f"CREATE DATABASE {home.name} ENCODING '{encoding}' LOCALE 'C'"
        " TEMPLATE template0"
    )
    try:
        home.execute("CREATE TABLE t (id int PRIMARY KEY, note text, notes varchar[])")
        stored = f"convert_from('\\x6181c3a9', '{encoding}')"
        home.execute("INSERT INTO t VALUES (1, 'fine', '{}')")
        home.execute(f"INSERT INTO t VALUES (2, {stored}, ARRAY[{stored}])")  # noqa: S608 - our own
        assert read(postgres_url(home.dsn), "t").rows == [
            {"id": 1, "note": "fine", "notes": []},
            {"id": 2, "note": note, "notes": [note]},
        ]
    finally:
        database.execute(f"DROP DATABASE {home.name} WITH (FORCE)")


def test_names_of_any_kind_work(database: Home) -> None:
    database.execute('CREATE SCHEMA "S.x"')
    database.execute(
        'CREATE TABLE "S.x"."T""a%s:b" ("I d" bigint PRIMARY KEY, "q%(x)s" int)'
    )
    database.execute('INSERT INTO "S.x"."T""a%s:b" VALUES (1, 2)')
    found = read(postgres_url(database.dsn), 'S.x.T"a%s:b', "I d")
    assert found.rows == [{"I d": 1, "q%(x)s": 2}]


@pytest.mark.parametrize(
    ("created", "said"),
    [
        ("TABLE t (id uuid PRIMARY KEY)", r"is not an integer .*UUID"),
        ("TABLE t (id int UNIQUE)", "may be null"),
        ("TABLE t (id int NOT NULL)", "is not unique"),
        ("VIEW t AS SELECT 1 AS id", "to a view"),
        ("MATERIALIZED VIEW t AS SELECT 1 AS id", "is not unique"),
    ],
)
def test_unfit_key_is_refused(database: Home, created: str, said: str) -> None:
    database.execute(f"CREATE {created}")
    with pytest.raises(ConfigError, match=f"table t: the key id .*{said}"):
        looked(postgres_url(database.dsn), "t")


def test_index_over_some_rows_makes_no_key(database: Home) -> None:
    database.execute("CREATE TABLE t (id int NOT NULL, gone boolean)")
    database.execute("CREATE UNIQUE INDEX ON t (id) WHERE NOT gone")
    with pytest.raises(ConfigError, match="is not unique"):
        looked(postgres_url(database.dsn), "t")
    database.execute("CREATE UNIQUE INDEX ON t (id)")
    assert looked(postgres_url(database.dsn), "t").key.kind == "INTEGER"


def test_table_from_which_others_inherit_is_refused(database: Home) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    database.execute("CREATE TABLE child (PRIMARY KEY (id)) INHERITS (t)")
    url = postgres_url(database.dsn)
    for name in ("t", "public.t"):
        with pytest.raises(ConfigError, match="is not unique: tables inherit"):
            looked(url, name)
    assert looked(url, "child").names == ("id",)
    database.execute("CREATE TABLE drawn (id serial PRIMARY KEY)")
    database.execute("CREATE TABLE other (PRIMARY KEY (id)) INHERITS (drawn)")
    assert looked(url, "drawn").names == ("id",)  # of one sequence, they do not repeat
    database.execute("ALTER TABLE other ALTER id SET DEFAULT 7")
    with pytest.raises(ConfigError, match="is not unique: tables inherit"):
        looked(url, "drawn")


def test_partitioned_table_and_key_of_a_domain_are_read(database: Home) -> None:
    database.execute("CREATE DOMAIN number AS bigint CHECK (value >= 0)")
    database.execute("CREATE TABLE t (id number PRIMARY KEY) PARTITION BY RANGE (id)")
    for low, high in ((0, 10), (10, 20)):
        bounds = f"FROM ({low}) TO ({high})"
        database.execute(f"CREATE TABLE t{low} PARTITION OF t FOR VALUES {bounds}")
    database.execute("INSERT INTO t SELECT generate_series(19, 5, -7)")
    found = read(postgres_url(database.dsn), "t").rows
    assert found == [{"id": 5}, {"id": 12}, {"id": 19}]


def test_key_of_decimals_is_whole_or_refused(database: Home) -> None:
    database.execute("CREATE TABLE t (id numeric(20,0) PRIMARY KEY)")
    database.execute("INSERT INTO t VALUES (5), (7)")
    url = postgres_url(database.dsn)
    assert read(url, "t").rows == [{"id": Decimal(5)}, {"id": Decimal(7)}]
    database.execute("INSERT INTO t VALUES ('NaN')")
    with pytest.raises(ConfigError, match="has values that are not integers"):
        read(url, "t")


def test_key_beyond_a_bigint_is_refused_and_not_passed_over(database: Home) -> None:
    database.execute("CREATE TABLE t (id numeric(20,0) PRIMARY KEY)")
    database.execute("INSERT INTO t VALUES (5), (9223372036854775807)")
    url, highest = postgres_url(database.dsn), (1 << 63) - 1
    shape = looked(url, "t")
    with Database(url).session() as connection:
        assert newest(connection, shape) == ahead(connection, shape, 5, 9) == highest
        database.execute("INSERT INTO t VALUES (9223372036854775808)")
        said = f"table t: the key id has the value {highest + 1}"
        with pytest.raises(ConfigError, match=said):
            newest(connection, shape)
        with pytest.raises(ConfigError, match=said):
            ahead(connection, shape, highest, 1)
        assert ahead(connection, shape, None, 2) == highest
        database.execute("INSERT INTO t VALUES (-9223372036854775809)")
        with pytest.raises(ConfigError, match="table t: the key id") as refused:
            oldest(connection, shape)
    assert "primary_key" in refused.value.hint


@pytest.fixture
def limited(database: Home) -> Iterator[str]:
    """Log in as somebody who may do nothing yet."""
    role = f"r_{database.name}"
    database.execute(f"CREATE ROLE {role} LOGIN")
    database.execute("CREATE SCHEMA s")
    database.execute('CREATE TABLE s."th""eirs%" (id int PRIMARY KEY)')
    yield postgres_url(database.dsn, user=role)
    database.execute(f"DROP OWNED BY {role}")
    database.execute(f"DROP ROLE {role}")


def test_missing_right_names_the_statement_that_gives_it(
    limited: str, database: Home
) -> None:
    with pytest.raises(PermissionLacking, match="permission denied") as caught:
        looked(limited, 's.th"eirs%')
    database.execute(caught.value.repair.sql)
    assert looked(limited, 's.th"eirs%').table == 'th"eirs%'


@pytest.mark.parametrize("driver", ["psycopg", "psycopg2"])
def test_rows_that_a_policy_hides_are_refused_and_not_missing(
    limited: str, database: Home, driver: str
) -> None:
    url = limited.replace("+psycopg:", f"+{driver}:")
    role = f"r_{database.name}"
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    database.execute("INSERT INTO t VALUES (1), (2), (3)")
    database.execute(f"GRANT SELECT ON t TO {role}")
    shape = looked(url, "t")
    database.execute(
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY;"
        "CREATE POLICY odd ON t USING (id % 2 = 1)"
    )
    with (
        pytest.raises(PermissionLacking, match='policy for table "t"') as read_on,
        Database(url).session() as connection,
    ):
        newest(connection, shape)
    assert "BYPASSRLS" in (read_on.value.hint or "")
    with pytest.raises(PermissionLacking, match='policy for table "t"') as caught:
        looked(url, "t")
    assert caught.value.repair.sql == f'ALTER ROLE "{role}" BYPASSRLS;'
    database.execute(caught.value.repair.sql)
    assert [row["id"] for row in read(url, "t").rows] == [1, 2, 3]


def test_right_to_some_columns_is_enough_for_these(
    limited: str, database: Home
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY, open int, secret int)")
    database.execute(f"GRANT SELECT (id, open) ON t TO r_{database.name}")
    assert looked(limited, "t", "id", "open").names == ("id", "open")
    with pytest.raises(PermissionLacking, match="permission denied"):
        looked(limited, "t")


def test_refused_connections_say_what_to_do(database: Home) -> None:
    dsn = database.dsn
    for replaced, kind, said in (
        ({"user": "nosuch"}, PermissionLacking, 'role "nosuch" does not exist'),
        ({"dbname": "nosuch"}, ConfigError, 'database "nosuch" does not exist'),
        ({"port": str(free_port())}, Transient, "Connection refused"),
        ({"host": "nosuch.invalid"}, Transient, "resolve host"),
        ({"colour": "red"}, ConfigError, 'invalid connection option "colour"'),
    ):
        with pytest.raises(kind, match=said):
            looked(postgres_url(dsn, **replaced), "t")


def test_server_killed_while_reading_may_be_tried_again(
    own_postgres: OwnPostgres, caplog: pytest.LogCaptureFixture
) -> None:
    server = own_postgres(18)
    made = (
        "CREATE TABLE t AS SELECT id, repeat('x', 100) FROM generate_series(1, 30000)"
    )
    Home(server).execute(f"{made} id")
    Home(server).execute("ALTER TABLE t ADD PRIMARY KEY (id)")
    url = postgres_url(server.dsn())
    shape = looked(url, "t")
    read: list[tuple[Any, ...]] = []

    def killed_while_read() -> None:
        with Database(url).session() as connection:
            for block in rows(connection, shape, None, 30_000):
                read.extend(block)
                server.kill()

    with (
        caplog.at_level(logging.WARNING),
        warnings.catch_warnings(record=True) as warned,
    ):
        warnings.simplefilter("always")
        with pytest.raises(Transient, match="reading the postgresql database"):
            killed_while_read()
        gc.collect()
    assert not [one.message for one in warned if one.category is ResourceWarning]
    assert [row[0] for row in read] == list(range(1, len(read) + 1))
    assert 0 < len(read) < 30_000
    assert not caplog.records  # SQLAlchemy has nothing to add


def test_page_leaves_neither_lock_nor_transaction_behind(database: Home) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    database.execute("INSERT INTO t VALUES (1), (2)")
    url = postgres_url(database.dsn)
    shape = looked(url, "t")
    with Database(url).session() as connection:
        blocks = rows(connection, shape, None, 9, limit=2)
        assert next(blocks) == [(1,), (2,)]
        held = "SELECT count(*) FROM pg_locks WHERE relation = 't'::regclass"
        assert database.fetch(held) == [(0,)]
        database.execute("INSERT INTO t VALUES (7)")
        assert newest(connection, shape) == 7


def test_locked_table_is_not_waited_for_for_ever(
    database: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    url = postgres_url(database.dsn)
    shape = looked(url, "t")
    settings = "walstream.sources.sql.database.engine._POSTGRES"
    monkeypatch.setattr(settings, {"lock_timeout": "0.2s"})
    with psycopg.connect(database.dsn) as holder:
        holder.execute("LOCK TABLE t")
        with (
            pytest.raises(Transient, match="lock timeout"),
            Database(url).session() as connection,
        ):
            newest(connection, shape)
