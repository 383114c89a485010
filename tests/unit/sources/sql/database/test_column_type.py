"""Types of databases' columns, as records with a schema have them."""

from typing import Any

import pytest
from sqlalchemy import types
from sqlalchemy.dialects import mssql, mysql, postgresql, sqlite

from walstream.formats.encodings.row.column import RowColumn, RowColumnType
from walstream.sources.sql.database.column_type import row_columns, row_type
from walstream.sources.sql.database.shape import SqlColumn, SqlTableShape


@pytest.mark.parametrize(
    ("dialect", "kind", "expected"),
    [
        ("postgresql", postgresql.SMALLINT(), "int16"),
        ("postgresql", postgresql.INTEGER(), "int32"),
        ("postgresql", postgresql.BIGINT(), "int64"),
        ("postgresql", postgresql.OID(), "int64"),
        ("postgresql", postgresql.REAL(), "double"),
        ("postgresql", postgresql.TIMESTAMP(), "timestamp"),
        ("postgresql", postgresql.TIMESTAMP(timezone=True), "zoned"),
        ("postgresql", postgresql.TIME(timezone=True), "string"),
        ("postgresql", postgresql.INTERVAL(), "string"),
        ("postgresql", postgresql.JSONB(), "json"),
        ("postgresql", postgresql.HSTORE(), "json"),
        ("postgresql", postgresql.BYTEA(), "bytes"),
        ("postgresql", postgresql.BIT(3), "string"),
        ("postgresql", postgresql.INET(), "string"),
        ("postgresql", postgresql.ENUM("a", name="e"), "string"),
        ("postgresql", postgresql.ARRAY(types.TEXT(), dimensions=2), "json"),
        ("postgresql", postgresql.DOMAIN("d", types.INTEGER()), "int32"),
        ("mysql", mysql.TINYINT(display_width=1), "int16"),
        ("mariadb", mysql.INTEGER(unsigned=True), "int64"),
        ("mysql", mysql.SMALLINT(unsigned=True), "int32"),
        ("mysql", mysql.MEDIUMINT(), "int32"),
        ("mysql", mysql.BIGINT(unsigned=True), "int64"),
        ("mysql", mysql.BIT(8), "int64"),
        ("mysql", mysql.YEAR(), "int32"),
        ("mysql", mysql.DOUBLE(), "double"),
        ("mysql", mysql.TIME(), "time"),
        ("mysql", mysql.DATETIME(), "timestamp"),
        ("mysql", mysql.SET("a"), "string"),
        ("mysql", types.VARBINARY(3), "bytes"),
        ("sqlite", sqlite.INTEGER(), "int64"),
        ("sqlite", types.SMALLINT(), "int64"),
        ("sqlite", types.DATE(), "date"),
        ("sqlite", types.NullType(), "string"),
        ("mssql", mssql.DATETIMEOFFSET(), "zoned"),  # type: ignore[no-untyped-call]
        ("mssql", mssql.UNIQUEIDENTIFIER(), "uuid"),
        ("oracle", types.INTEGER(), "int64"),
        ("other", types.NUMERIC(), "string"),
        ("other", types.NUMERIC(3, -2), "string"),
    ],
)
def test_a_type_is_that_of_its_values(dialect: str, kind: Any, expected: str) -> None:
    assert row_type(kind, dialect).kind == expected


def test_numbers_of_digits_and_items_are_kept() -> None:
    assert row_type(mysql.DECIMAL(10, 2), "mysql") == RowColumnType("decimal", 10, 2)
    assert row_type(mssql.MONEY(), "mssql") == RowColumnType("decimal", 19, 4)
    prices: Any = postgresql.ARRAY(types.NUMERIC(6, 2))
    item = RowColumnType("decimal", 6, 2)
    assert row_type(prices, "postgresql") == RowColumnType("array", items=item)


def test_the_key_is_never_null_whatever_the_catalog_says() -> None:
    key = SqlColumn("id", "INTEGER", sqlite.INTEGER(), nullable=True)
    other = SqlColumn("v", "TEXT", sqlite.TEXT(), nullable=False)
    odd = SqlColumn("w", "UNKNOWN", types.NullType())
    shape = SqlTableShape("t", "", "t", key, (key, other, odd), "sqlite")
    assert row_columns(shape) == (
        RowColumn("id", RowColumnType("int64"), required=True),
        RowColumn("v", RowColumnType("string"), required=True),
        RowColumn("w", RowColumnType("string"), required=False),
    )
