"""Reading a table of a real server as a poll does."""

from dataclasses import dataclass
from typing import Any

from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import URL

from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.query import newest, rows
from walstream.sources.sql.database.shape import SqlTableShape, TableSpec
from walstream.sources.sql.database.table import look
from walstream.sources.sql.database.values import ValueConverters


@dataclass(frozen=True)
class Read:
    shape: SqlTableShape
    rows: list[dict[str, Any]]  # by column, in the order of the key


def postgres_url(dsn: str, driver: str = "psycopg", **replaced: str) -> str:
    """Write a connection string as SQLAlchemy wants it."""
    given = {name: str(text) for name, text in conninfo_to_dict(dsn).items()} | replaced
    url = URL.create(
        f"postgresql+{driver}",
        username=given.pop("user"),
        password=given.pop("password", None),
        host=given.pop("host"),
        port=int(given.pop("port", "5432")),
        database=given.pop("dbname"),
        query=given,
    )
    return url.render_as_string(hide_password=False)


def looked(url: str, table: str, key: str = "id", *fields: str) -> SqlTableShape:
    with Database(url).session() as connection:
        return look(connection, TableSpec(table, key, fields))


def read(url: str, table: str, key: str = "id", *fields: str) -> Read:
    """Read all of it, converted."""
    shape = looked(url, table, key, *fields)
    found = []
    with Database(url).session() as connection:
        values = ValueConverters(shape, connection.dialect)
        if (high := newest(connection, shape)) is not None:
            for block in rows(connection, shape, None, high):
                found += [
                    dict(zip(shape.names, row, strict=True))
                    for row in values.convert(block)
                ]
    return Read(shape, found)
