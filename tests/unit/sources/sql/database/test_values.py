"""Values of SQLite's columns, and converters that no server is needed for."""

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from sqlalchemy import make_url, types
from sqlalchemy.dialects import mssql, mysql, postgresql
from sqlalchemy.engine import Dialect

from tests.support.servers.sqlite import Lite
from walstream.sources.sql.database.query import rows
from walstream.sources.sql.database.values import (
    ValueConverters,
    comes_as_text,
    converter,
)

Type = types.TypeEngine[Any]
EXACT = dt.datetime(2026, 1, 2, 3, 4, 5, 123456)  # noqa: DTZ001 - as it is stored
DEEP = "[" * 100_000 + "]" * 100_000


def of(name: str) -> Dialect:
    return make_url(f"{name}://").get_dialect()()


@pytest.mark.parametrize(
    ("kind", "stored", "value"),
    [
        ("DATETIME", "2026-01-02 03:04:05.123456", EXACT),
        ("DATETIME", "2026-01-02T03:04:05.123456", EXACT),
        ("TIMESTAMP", "2026-01-02 03:04:05.123456", EXACT),
        ("DATETIME", "2026-01-02 03:04:05.1234567", "2026-01-02 03:04:05.1234567"),
        ("DATETIME", "0000-00-00 00:00:00", "0000-00-00 00:00:00"),
        ("DATETIME", "junk", "junk"),
        ("DATETIME", 1795242889, 1795242889),
        ("DATETIME", b"2026", b"2026"),
        ("DATE", "2026-01-02", dt.date(2026, 1, 2)),
        ("DATE", "2026-02-31", "2026-02-31"),
        ("DATE", "2026-01-02 03:04:05", "2026-01-02 03:04:05"),
        ("TIME", "03:04:05", dt.time(3, 4, 5)),
        ("TIME", "24:00", "24:00"),
        ("BOOLEAN", 1, True),
        ("BOOLEAN", 0, False),
        ("BOOLEAN", 2, 2),
        ("BOOLEAN", "yes", "yes"),
        ("NUMERIC(10, 2)", 5, Decimal("5.00")),
        ("NUMERIC(10, 2)", 1.5, Decimal("1.50")),
        ("NUMERIC(10, 2)", 1.2345, Decimal("1.2345")),
        ("NUMERIC(30, 2)", 12345678901234567, Decimal("12345678901234567.00")),
        ("NUMERIC(30, 2)", 1e30, Decimal("1" + "0" * 30 + ".00")),
        ("NUMERIC", 7, Decimal(7)),
        ("NUMERIC(10, 2)", "junk", "junk"),
        ("NUMERIC(10, 2)", float("inf"), float("inf")),
        ("FLOAT", 1.5, 1.5),
        ("JSON", '{"a": [1, null]}', {"a": [1, None]}),
        ("JSON", "{", "{"),
        ("JSON", DEEP, DEEP),
        ("JSON", 5, 5),
        ("TEXT", "é😀\x00", "é😀\x00"),
        ("BLOB", b"\x00\xff", b"\x00\xff"),
        ("BLOB", "text", "text"),
        ("INTEGER", "text", "text"),
        ("SOMETHING", 1.5, Decimal("1.5")),
        ("DATETIME", None, None),
    ],
)
def test_sqlite_value_is_that_of_its_type_or_stays(
    lite: Lite, kind: str, stored: object, value: object
) -> None:
    lite.execute(f"CREATE TABLE t (id INTEGER PRIMARY KEY, v {kind})")
    lite.execute("INSERT INTO t VALUES (1, ?)", stored)
    shape = lite.look("t")
    with lite.session() as connection:
        (block,) = rows(connection, shape, None, 1)
        (row,) = ValueConverters(shape, connection.dialect).convert(block)
    assert row == (1, value)
    assert type(row[1]) is type(value)
    assert str(row[1]) == str(value)


def test_rows_that_need_nothing_are_handed_on_as_they_are(lite: Lite) -> None:
    lite.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT, b BLOB, c FLOAT)")
    shape = lite.look("t")
    values = ValueConverters(shape, of("sqlite"))
    block: list[tuple[Any, ...]] = [(1, "a", b"b", 1.5)]
    assert values.convert(block) is block
    assert values.needed == {}


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (mysql.BIT(1), b"\x01", 1),
        (mysql.BIT(64), b"\x00\x00\x00\x00\x00\x00\x01\x00", 256),
        (mysql.BIT(8), 7, 7),
        (mysql.FLOAT(), 16777216.0, 16777216.0),
        (mysql.FLOAT(), 1.100000023841858, 1.1),
        (mysql.FLOAT(), 1234567.875, 1234567.9),
        (mysql.FLOAT(), -0.0, -0.0),
        (mysql.FLOAT(), 3.4028234663852886e38, 3.4028235e38),
        (mysql.FLOAT(), 1e300, 1e300),
        (mysql.FLOAT(), "1.1", "1.1"),
        (mysql.JSON(), '{"a": 1}', {"a": 1}),
        (mysql.JSON(), b"[1]", [1]),
        (mysql.JSON(), "9" * 5000, "9" * 5000),
    ],
    ids=repr,
)
def test_mysql_value_is_made(kind: Type, raw: object, value: object) -> None:
    made = converter(kind, of("mysql"))
    assert made is not None
    assert made(raw) == value


@pytest.mark.parametrize(
    "kind",
    [
        mysql.BIGINT(unsigned=True),
        mysql.DECIMAL(65, 30),
        mysql.DOUBLE(),
        mysql.TIME(),
        mysql.DATETIME(),
        mysql.SET("a", "b"),
        mysql.ENUM("a", "b"),
        mysql.TINYINT(1),
        mysql.LONGBLOB(),
        mysql.LONGTEXT(),
        types.NullType(),
    ],
    ids=repr,
)
def test_mysql_value_of_the_driver_is_right_already(kind: Type) -> None:
    dialect = of("mysql")
    dialect.driver = "pymysql"
    assert converter(kind, dialect) is None


@pytest.mark.parametrize("driver", ["mysqldb", "mysqlconnector", "mariadbconnector"])
def test_dates_that_a_driver_of_mysql_loses_are_written_by_the_server(
    driver: str,
) -> None:
    dialect = mysql.dialect()
    dialect.driver = driver
    for kind in (types.Date(), mysql.DATETIME(fsp=6), mysql.TIMESTAMP()):
        assert comes_as_text(kind, dialect)
        made = converter(kind, dialect)
        assert made is not None
        assert made("0000-00-00") == "0000-00-00"
    assert not comes_as_text(types.Integer(), dialect)
    made = converter(types.Date(), dialect)
    assert made is not None
    assert made("2026-07-02") == dt.date(2026, 7, 2)


def test_set_that_a_driver_makes_of_mysqls_is_its_text_again() -> None:
    dialect = of("mysql")
    dialect.driver = "mysqlconnector"
    made = converter(mysql.SET("z", "a", "m"), dialect)
    assert made is not None
    assert made({"m", "z"}) == "z,m"
    assert made(set()) == ""
    assert made("z,m") == "z,m"


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        (postgresql.JSONB(), '{"a": 1}', {"a": 1}),
        (postgresql.JSON(), {"a": 1}, {"a": 1}),
        (postgresql.DOMAIN("d", postgresql.JSONB()), "[1]", [1]),
        (postgresql.ARRAY(postgresql.JSONB()), [["1", None]], [[1, None]]),
        (
            postgresql.ARRAY(postgresql.ENUM("a", "b", name="e")),
            "{a,NULL}",
            ["a", None],
        ),
    ],
    ids=repr,
)
def test_postgres_value_is_made(kind: Type, raw: object, value: object) -> None:
    made = converter(kind, of("postgresql+psycopg"))
    assert made is not None
    assert made(raw) == value


@pytest.mark.parametrize(
    "kind",
    [
        postgresql.NUMERIC(10, 2),
        postgresql.DOUBLE_PRECISION(),
        postgresql.TIMESTAMP(timezone=True),
        postgresql.INTERVAL(),
        postgresql.UUID(),
        postgresql.BYTEA(),
        postgresql.ENUM("a", name="e"),
        postgresql.DATERANGE(),
        postgresql.ARRAY(types.Integer()),
    ],
    ids=repr,
)
def test_postgres_value_of_the_driver_is_right_already(kind: Type) -> None:
    assert converter(kind, of("postgresql+psycopg")) is None


def test_other_engines_values_are_made_as_sqlalchemy_does_and_never_refused() -> None:
    dialect = of("mssql+pyodbc")
    made = converter(types.Interval(), dialect)
    assert made is not None
    assert made(dt.datetime(1970, 1, 2)) == dt.timedelta(days=1)  # noqa: DTZ001
    assert made("junk") == "junk"
    assert converter(mssql.NVARCHAR(), dialect) is None
    assert converter(types.Numeric(), dialect) is None
