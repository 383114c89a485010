"""A SQLite file: the database that needs no server."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection

from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.shape import SqlTableShape, TableSpec
from walstream.sources.sql.database.table import look


@dataclass(frozen=True)
class Lite:
    path: Path

    @property
    def url(self) -> str:
        return f"sqlite:///{self.path}"

    def execute(self, statement: str, *params: object) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(statement, params)

    def fill(self, table: str, rows: Iterator[tuple[object, ...]]) -> None:
        """Insert rows, all of one width."""
        some = list(rows)
        marks = ", ".join("?" * len(some[0]))
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", some)  # noqa: S608 - a test's own name

    @contextmanager
    def session(self) -> Iterator[Connection]:
        with Database(self.url).session() as connection:
            yield connection

    def look(self, table: str, key: str = "id", *fields: str) -> SqlTableShape:
        with self.session() as connection:
            return look(connection, TableSpec(table, key, fields))
