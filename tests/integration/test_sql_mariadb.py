"""MariaDB through SQLAlchemy: tables, values, refusals, a server that goes away."""

import datetime as dt
import logging
from collections.abc import Iterator
from decimal import Decimal
from importlib.util import find_spec
from typing import Any

import pytest
from sqlalchemy.types import NullType

from tests.support.deadline import wait_until
from tests.support.fixtures.mariadb import (
    Mariadb,
    MariadbServer,
    OwnMariadb,
    RemoteMariadb,
)
from tests.support.programs.table_read import looked, read
from walstream.errors import ConfigError, PermissionLacking, Transient
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.query import (
    ahead,
    cuts,
    newest,
    picked,
    present,
    rows,
)
from walstream.testing.servers.port import free_port

HIGHEST = (1 << 64) - 1
MOMENT = dt.datetime(2026, 7, 2, 3, 4, 5, 123456)  # noqa: DTZ001 - as it is stored
LONG = "12345678901234567890123456789012345.123456789012345678901234567890"
ZERO_DATE, ZERO_MOMENT = "0000-00-00", "0000-00-00 00:00:00.000000"
POINT = bytes.fromhex("000000000101000000000000000000f03f0000000000000040")

DRIVERS = {"pymysql": "pymysql", "mysqldb": "MySQLdb", "mysqlconnector": "mysql"}

# type, what is inserted, what is read
VALUES: list[tuple[str, str, object]] = [
    ("tinyint(1)", "true", 1),
    ("boolean", "false", 0),
    ("tinyint unsigned", "255", 255),
    ("smallint", "-32768", -32768),
    ("mediumint zerofill", "5", 5),
    ("bigint", "-9223372036854775808", -(1 << 63)),
    ("bigint unsigned", str(HIGHEST), HIGHEST),
    ("decimal(65,30)", f"'{LONG}'", Decimal(LONG)),
    ("decimal(10,2)", "1.5", Decimal("1.50")),
    ("float", "1.1", 1.1),
    ("float", "16777216", 16777216.0),
    ("float", "-3.4028234663852886e38", -3.4028235e38),
    ("float(7,3)", "1234.567", 1234.567),
    ("float(10,2) unsigned zerofill", "1.5", 1.5),
    ("double", "1e-300", 1e-300),
    ("bit(1)", "b'1'", 1),
    ("bit(64)", "b'1111'", 15),
    ("date", "'2026-01-02'", dt.date(2026, 1, 2)),
    ("date", "'0000-00-00'", ZERO_DATE),
    ("date", "'2026-00-31'", "2026-00-31"),
    ("datetime(6)", "'2026-07-02 03:04:05.123456'", MOMENT),
    ("datetime(6)", "'0000-00-00'", ZERO_MOMENT),
    ("datetime(6)", "'2026-02-00 01:02:03'", "2026-02-00 01:02:03.000000"),
    ("timestamp(6) null", "'0000-00-00'", ZERO_MOMENT),
    ("time(6)", "'-838:59:59'", dt.timedelta(hours=-838, minutes=-59, seconds=-59)),
    ("time", "'01:02:03'", dt.timedelta(hours=1, minutes=2, seconds=3)),
    ("year", "2026", 2026),
    ("char(10)", "'é '", "é"),
    ("varchar(300) character set latin1", "'é\\\\'", "é\\"),
    ("text character set utf8mb4", "'😀'", "😀"),
    ("text", "x'4100'", "A\x00"),
    ("text character set ucs2", "_ucs2 x'D800'", r"\xed\xa0\x80"),
    ("text compressed", "repeat('x', 500)", "x" * 500),
    ("varbinary(16)", "x'00ff'", b"\x00\xff"),
    ("binary(4)", "x'00'", b"\x00\x00\x00\x00"),
    ("tinyblob", "''", b""),
    ("longblob", "repeat(x'00', 70000)", b"\x00" * 70_000),
    ("enum('x','y')", "'y'", "y"),
    ("enum('x','y')", "'nonsense'", ""),
    ("set('b','a')", "'a,b'", "b,a"),
    ("json", "'{\"a\": [1.50, null]}'", '{"a": [1.50, null]}'),
    ("point", "point(1, 2)", POINT),
    ("geometry", "point(1, 2)", POINT),
    ("inet6", "'::1'", "::1"),
    ("inet4", "'1.2.3.4'", "1.2.3.4"),
    (
        "uuid",
        "'91b1a5fb-e5e3-11f1-9037-02fc00000001'",
        "91b1a5fb-e5e3-11f1-9037-02fc00000001",
    ),
    ("int", "null", None),
]


def test_every_type_is_read_as_the_value_that_it_holds(
    mariadb_database: Mariadb,
) -> None:
    columns = [f"c{number} {kind}" for number, (kind, *_) in enumerate(VALUES)]
    mariadb_database.execute(
        f"CREATE TABLE t (id int PRIMARY KEY, {', '.join(columns)})"
    )
    with mariadb_database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+05:00'")
        inserted = ", ".join(given for _, given, _ in VALUES)
        cursor.execute(f"INSERT INTO t VALUES (1, {inserted})")  # noqa: S608 - our own
        connection.commit()

    (row,) = read(mariadb_database.url, "t").rows

    wanted = {f"c{number}": value for number, (*_, value) in enumerate(VALUES)}
    assert row == {"id": 1, **wanted}
    for name, value in wanted.items():
        assert type(row[name]) is type(value)


def test_a_date_that_is_none_is_its_text_with_each_driver_that_is_installed(
    mariadb_database: Mariadb,
) -> None:
    """PyMySQL is; mysqlclient and mysql-connector hand out None for such a date."""
    mariadb_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, d date, m datetime(6), s timestamp NULL)"
    )
    with mariadb_database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
        moment = "'2026-07-02 03:04:05.123456'"
        cursor.execute(
            "INSERT INTO t VALUES (1, '0000-00-00', '0000-00-00', '0000-00-00'),"  # noqa: S608 - our own
            f" (2, '2026-02-00', '2026-02-00 01:02:03', NULL),"
            f" (3, '2026-07-02', {moment}, {moment})"
        )
        connection.commit()
    whole = MOMENT.replace(microsecond=0)
    wanted = [
        {"id": 1, "d": ZERO_DATE, "m": ZERO_MOMENT, "s": "0000-00-00 00:00:00"},
        {"id": 2, "d": "2026-02-00", "m": "2026-02-00 01:02:03.000000", "s": None},
        {"id": 3, "d": MOMENT.date(), "m": MOMENT, "s": whole},
    ]
    for driver, module in DRIVERS.items():
        if find_spec(module) is not None:
            url = mariadb_database.url.replace("+pymysql", f"+{driver}")
            assert read(url, "t").rows == wanted, driver


def test_instant_is_read_in_utc_whatever_the_server_says(
    mariadb_database: Mariadb,
) -> None:
    mariadb_database.execute("CREATE TABLE t (id int PRIMARY KEY, at timestamp)")
    with mariadb_database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET time_zone = '+05:00'")
        cursor.execute("INSERT INTO t VALUES (1, '2026-07-02 05:00:00')")
        connection.commit()
    mariadb_database.execute("SET GLOBAL time_zone = '+03:00'")
    try:
        (row,) = read(mariadb_database.url, "t").rows
    finally:
        mariadb_database.execute("SET GLOBAL time_zone = 'SYSTEM'")
    assert row["at"] == dt.datetime(2026, 7, 2)  # noqa: DTZ001 - as MariaDB has it


@pytest.fixture
def loose(mariadb_database: Mariadb) -> Iterator[Mariadb]:
    """Let new sessions see uncommitted rows, and pad what is fixed in length."""
    isolation = "SET GLOBAL TRANSACTION ISOLATION LEVEL"
    before = mariadb_database.fetch("SELECT @@GLOBAL.sql_mode")[0][0]
    mariadb_database.execute(f"{isolation} READ UNCOMMITTED")
    mode = "CONCAT('ANSI_QUOTES,PAD_CHAR_TO_FULL_LENGTH,', @@GLOBAL.sql_mode)"
    mariadb_database.execute(f"SET GLOBAL sql_mode = {mode}")
    yield mariadb_database
    mariadb_database.execute(f"{isolation} REPEATABLE READ")
    mariadb_database.execute("SET GLOBAL sql_mode = %s", before)


def test_server_of_loose_settings_is_read_as_any_other(loose: Mariadb) -> None:
    loose.execute("CREATE TABLE t (id int AUTO_INCREMENT PRIMARY KEY, c char(6))")
    loose.execute("INSERT INTO t (c) VALUES ('a')")
    with loose.connect() as writer, writer.cursor() as cursor:
        cursor.execute("INSERT INTO t (c) VALUES ('never')")
        assert read(loose.url, "t").rows == [{"id": 1, "c": "a"}]
        writer.rollback()


def test_hidden_columns_are_read_where_they_are_named(
    mariadb_database: Mariadb,
) -> None:
    mariadb_database.execute(
        "CREATE TABLE t (id int PRIMARY KEY, hidden int INVISIBLE DEFAULT 7,"
        " twice int AS (id * 2) PERSISTENT, thrice int AS (id * 3) VIRTUAL)"
    )
    mariadb_database.execute("INSERT INTO t (id) VALUES (1)")
    url = mariadb_database.url
    assert read(url, "t").rows == [{"id": 1, "twice": 2, "thrice": 3}]
    assert read(url, "t", "id", "hidden").rows == [{"id": 1, "hidden": 7}]


def test_hidden_key_comes_first(mariadb_database: Mariadb) -> None:
    mariadb_database.execute(
        "CREATE TABLE t (name text, id int INVISIBLE AUTO_INCREMENT PRIMARY KEY)"
    )
    mariadb_database.execute("INSERT INTO t VALUES ('a')")
    assert read(mariadb_database.url, "t").rows == [{"id": 1, "name": "a"}]


def test_type_that_sqlalchemy_does_not_know_is_unknown(
    mariadb_database: Mariadb,
) -> None:
    mariadb_database.execute("CREATE TABLE t (id int PRIMARY KEY, p point)")
    column = looked(mariadb_database.url, "t").columns[1]
    assert column.kind == "UNKNOWN"
    assert isinstance(column.type, NullType)


def test_names_of_any_kind_work(mariadb_database: Mariadb) -> None:
    mariadb_database.execute(
        'CREATE TABLE `We.ird ``%s:x"é` (`I.d ``%(a)s` int PRIMARY KEY,'
        " `SELECT` int, `:p` int)"
    )
    mariadb_database.execute('INSERT INTO `We.ird ``%s:x"é` VALUES (1, 2, 3)')
    for name in ('We.ird `%s:x"é', f'{mariadb_database.name}.We.ird `%s:x"é'):
        found = read(mariadb_database.url, name, "I.d `%(a)s")
        assert found.rows == [{"I.d `%(a)s": 1, "SELECT": 2, ":p": 3}]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("TABLE t (id varchar(9) PRIMARY KEY)", r"is not an integer .*VARCHAR"),
        ("TABLE t (id decimal(9,2) PRIMARY KEY)", "is not an integer"),
        ("TABLE t (id int UNIQUE)", "may be null"),
        ("TABLE t (id int NOT NULL)", "is not unique"),
        ("TABLE t (id int, x int, PRIMARY KEY (id, x))", "is not unique"),
        ("VIEW t AS SELECT 1 AS id", "to a view"),
    ],
)
def test_unfit_key_is_refused(mariadb_database: Mariadb, table: str, said: str) -> None:
    mariadb_database.execute(f"CREATE {table}")
    with pytest.raises(ConfigError, match=f"table t: the key id .*{said}"):
        looked(mariadb_database.url, "t")


def test_missing_table_column_and_database_are_named(mariadb_database: Mariadb) -> None:
    mariadb_database.execute("CREATE TABLE orders (id int PRIMARY KEY)")
    url = mariadb_database.url
    with pytest.raises(ConfigError, match="no table Orders: did you mean orders"):
        looked(url, "Orders")
    with pytest.raises(ConfigError, match=r"no table nosuch\.orders"):
        looked(url, "nosuch.orders")
    with pytest.raises(ConfigError, match="has no column ID: did you mean id"):
        looked(url, "orders", "ID")
    with pytest.raises(ConfigError, match="Unknown database 'nosuch'"):
        looked(mariadb_database.server.url("nosuch"), "orders")


def test_keys_beyond_a_signed_bigint_are_read(mariadb_database: Mariadb) -> None:
    mariadb_database.execute("CREATE TABLE t (id bigint unsigned PRIMARY KEY)")
    keys = [0, 5, (1 << 63) - 1, 1 << 63, HIGHEST - 1, HIGHEST]
    for key in keys:
        mariadb_database.execute("INSERT INTO t VALUES (%s)", key)
    shape = looked(mariadb_database.url, "t")
    with Database(mariadb_database.url).session() as connection:
        assert newest(connection, shape) == HIGHEST
        assert ahead(connection, shape, 5, 2) == 1 << 63
        blocks = list(rows(connection, shape, (1 << 63) - 1, HIGHEST))
        assert blocks == [[(1 << 63,), (HIGHEST - 1,), (HIGHEST,)]]
        assert present(connection, shape, [(1, 9), (1 << 63, HIGHEST)], 9) == [
            5,
            *keys[3:],
        ]
        assert list(picked(connection, shape, keys[4:])) == [
            [(HIGHEST - 1,), (HIGHEST,)]
        ]
        assert cuts(connection, shape, 5, HIGHEST, 2) == [
            ((1 << 63) - 2 + HIGHEST) // 2
        ]


@pytest.fixture
def limited(mariadb_database: Mariadb) -> Iterator[Mariadb]:
    """Log in as somebody who may do nothing yet."""
    server, user = mariadb_database.server, f"u_{mariadb_database.name[-8:]}"
    account = f"'{user}'@'%'"
    mariadb_database.execute(f"CREATE USER {account} IDENTIFIED BY 'p:@/w%'")
    other = RemoteMariadb(server.host, server.port, user, "p:@/w%")
    mariadb_database.execute(f"GRANT USAGE ON *.* TO {account}")
    mariadb_database.execute("CREATE TABLE mine (id int PRIMARY KEY)")
    mariadb_database.execute("CREATE TABLE `th``eirs` (id int PRIMARY KEY)")
    mariadb_database.execute(f"GRANT SELECT ON mine TO {account}")
    yield Mariadb(other, mariadb_database.name)
    mariadb_database.execute(f"DROP USER {account}")


def test_missing_right_names_the_statement_that_gives_it(
    limited: Mariadb, mariadb_database: Mariadb
) -> None:
    assert looked(limited.url, "mine").table == "mine"
    with pytest.raises(PermissionLacking, match="SELECT command denied") as caught:
        looked(limited.url, "th`eirs")
    mariadb_database.execute(caught.value.repair.sql)
    assert looked(limited.url, "th`eirs").table == "th`eirs"


def test_wrong_password_and_database_are_a_lack_of_rights(limited: Mariadb) -> None:
    wrong = limited.url.replace(limited.server.user, limited.server.user + "x")
    with pytest.raises(PermissionLacking, match="Access denied") as caught:
        looked(wrong, "mine")
    assert "p:@" not in str(caught.value)
    with pytest.raises(PermissionLacking, match="Access denied"):
        looked(limited.server.url("mysql"), "user")


def test_absent_server_may_be_tried_again() -> None:
    for host, port in (("127.0.0.1", free_port()), ("nosuch.invalid", 3306)):
        away = RemoteMariadb(host, port, "u", "secret")
        with pytest.raises(Transient, match=f"at {host}:{port}: Can't connect") as said:
            looked(away.url("d"), "t")
        assert "secret" not in str(said.value)


def test_option_that_the_driver_does_not_know_is_named(mariadb: MariadbServer) -> None:
    with pytest.raises(ConfigError, match=r"refuses the url.*'colour'"):
        looked(f"{mariadb.url('mysql')}?colour=red", "user")


def _fill(home: Mariadb, count: int) -> None:
    home.execute("CREATE DATABASE IF NOT EXISTS d")
    home.execute("CREATE TABLE d.t (id int PRIMARY KEY, note text)")
    filled = "INSERT INTO t SELECT seq, repeat('x', 100) FROM seq_1_to_"
    Mariadb(home.server, "d").execute(f"{filled}{count}")


def test_server_killed_while_reading_may_be_tried_again(
    own_mariadb: OwnMariadb, caplog: pytest.LogCaptureFixture
) -> None:
    server = own_mariadb()
    _fill(Mariadb(server), 30_000)
    shape = looked(server.url("d"), "t")
    read: list[tuple[Any, ...]] = []

    def killed_while_read() -> None:
        with Database(server.url("d")).session() as connection:
            for block in rows(connection, shape, None, 30_000):
                read.extend(block)
                server.kill()

    with (
        caplog.at_level(logging.WARNING),
        pytest.raises(Transient, match="reading the mysql database d at 127"),
    ):
        killed_while_read()
    assert [row[0] for row in read] == list(range(1, len(read) + 1))
    assert 0 < len(read) < 30_000
    assert not caplog.records  # SQLAlchemy has nothing to add

    server.start()
    with Database(server.url("d")).session() as connection:
        for block in rows(connection, shape, len(read), 30_000):
            read += block
    assert len(read) == 30_000


def test_silent_server_is_not_waited_for_for_ever(own_mariadb: OwnMariadb) -> None:
    server = own_mariadb()
    _fill(Mariadb(server), 100)
    url = f"{server.url('d')}?read_timeout=3"
    shape = looked(url, "t")

    def frozen_while_asked() -> None:
        with Database(url).session() as connection:
            server.freeze()
            newest(connection, shape)

    with pytest.raises(Transient, match="reading the mysql database d"):
        frozen_while_asked()


def test_locked_table_is_not_waited_for_for_ever(
    mariadb_database: Mariadb, monkeypatch: pytest.MonkeyPatch
) -> None:
    mariadb_database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    shape = looked(mariadb_database.url, "t")
    settings = {"mysql": ("SET SESSION lock_wait_timeout = 1",)}
    monkeypatch.setattr("walstream.sources.sql.database.engine._SETTINGS", settings)
    with mariadb_database.connect() as holder:
        holder.cursor().execute("LOCK TABLES t WRITE")
        with (
            pytest.raises(Transient, match="Lock wait timeout"),
            Database(mariadb_database.url).session() as connection,
        ):
            newest(connection, shape)


def test_key_beyond_an_unsigned_bigint_is_refused(mariadb_database: Mariadb) -> None:
    mariadb_database.execute("CREATE TABLE t (id decimal(20,0) PRIMARY KEY)")
    mariadb_database.execute("INSERT INTO t VALUES (%s)", HIGHEST)
    shape = looked(mariadb_database.url, "t")
    with Database(mariadb_database.url).session() as connection:
        assert newest(connection, shape) == HIGHEST
        mariadb_database.execute("INSERT INTO t VALUES (%s)", HIGHEST + 1)
        with pytest.raises(ConfigError, match=f"key id has the value {HIGHEST + 1}"):
            newest(connection, shape)


def test_page_leaves_neither_lock_nor_transaction_behind(
    mariadb_database: Mariadb,
) -> None:
    mariadb_database.execute("CREATE TABLE t (id int PRIMARY KEY)")
    for key in range(3):
        mariadb_database.execute("INSERT INTO t VALUES (%s)", key)
    shape = looked(mariadb_database.url, "t")
    with Database(mariadb_database.url).session() as connection:
        blocks = rows(connection, shape, None, 9, limit=3)
        assert next(blocks) == [(0,), (1,), (2,)]
        mariadb_database.execute("SET SESSION lock_wait_timeout = 1")
        mariadb_database.execute("ALTER TABLE t ADD COLUMN x int")
        mariadb_database.execute("INSERT INTO t VALUES (7, 7)")
        assert newest(connection, shape) == 7  # nor a snapshot


def test_rows_are_read_over_a_socket_too(own_mariadb: OwnMariadb) -> None:
    server = own_mariadb()
    home = Mariadb(server)
    home.execute("CREATE USER walstream@localhost IDENTIFIED BY 'w'")
    home.execute("GRANT ALL ON *.* TO walstream@localhost")
    _fill(home, 2)
    url = f"mysql+pymysql://walstream:w@/d?unix_socket={server.socket_path}"
    wait_until(server.socket_path.exists, 5, "the socket is there")
    assert [row["id"] for row in read(url, "t").rows] == [1, 2]
