"""What befalls one polled table is its own: it turns red, and the others go on.

On PostgreSQL, MariaDB and SQLite, with `walstream run`: tables `a` and `b`.
"""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import psycopg
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.mariadb import Mariadb
from tests.support.fixtures.postgres import PostgresServer, temporary_database
from tests.support.programs.polled_source import SOURCE, Polled
from tests.support.programs.sqlite_source import execute, file_of
from tests.support.programs.table_read import postgres_url
from walstream.config import load
from walstream.status.lookup.sources import look
from walstream.status.model import SourceStatus
from walstream.status.sql import TableStatus

LONG_S: Final = 150.0  # a machine may be busy
TABLES: Final[Mapping[str, Mapping[str, Any]]] = {
    "a": {},
    "b": {"fields": ["v"]},
}


class Shop(Protocol):
    """A database with the tables of this module."""

    url: str

    def execute(self, statement: str) -> None: ...


@dataclass
class Postgres:
    url: str
    dsn: str

    def execute(self, statement: str) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute(statement)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with psycopg.connect(self.dsn) as connection:
            connection.execute("LOCK TABLE b IN ACCESS EXCLUSIVE MODE")
            yield


@dataclass
class MariadbShop:
    url: str
    database: Mariadb

    def execute(self, statement: str) -> None:
        self.database.execute(statement)

    @contextmanager
    def locked(self) -> Iterator[None]:
        with closing(self.database.connect()) as session, session.cursor() as cursor:
            cursor.execute("LOCK TABLES b WRITE")
            yield


@dataclass
class SqliteShop:
    url: str
    file: Path

    def execute(self, statement: str) -> None:
        with closing(sqlite3.connect(self.file, timeout=30)) as connection:
            connection.executescript(statement)


def create(shop: Shop) -> None:
    for table in TABLES:
        shop.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, v VARCHAR(9))")


@dataclass
class Scene:
    """An instance that polls, and rows that are put into its tables."""

    shop: Any
    polled: Polled
    last: int = 0

    def insert(self, table: str) -> int:
        """Insert a row under the next key."""
        self.last += 1
        self.shop.execute(f"INSERT INTO {table} VALUES ({self.last}, 'v')")  # noqa: S608
        return self.last

    def arrives(self, table: str) -> None:
        """See a row of a table come through."""
        key = self.insert(table)

        def is_well() -> bool:  # its error is gone at the end of the poll
            found = self.table(table)
            return found.position == key and not found.error

        wait_until(is_well, LONG_S, "it is delivered")

    def source(self) -> SourceStatus:
        found = look(load(self.polled.configuration, {})).sources
        return next(one for one in found if one.name == SOURCE)

    def table(self, name: str) -> TableStatus:
        return self.source().tables[name]

    def turns_red(self, *words: str) -> None:
        """See that `b` says why it is not polled, and that `a` is."""

        def is_red() -> bool:
            seen.append(self.source())
            error = seen[-1].tables["b"].error
            if not error or not all(word in error for word in words):
                return False
            return (
                seen[-1].state == "polling"
            )  # a busy worker may be silent for a while

        seen: list[SourceStatus] = []
        wait_until(is_red, LONG_S, f"b says {words}")
        found = seen[-1]
        assert found.exit_code == 5
        assert any(found.tables["b"].error in text for text in found.problems)
        self.arrives("a")
        assert self.table("b").error


@contextmanager
def scene_of(shop: Shop, kafka: KafkaServer, folder: Path, prefix: str, **more: Any):  # type: ignore[no-untyped-def]  # noqa: ANN201
    polled = Polled(shop.url, kafka.bootstrap, folder, prefix, tables=TABLES, **more)
    with closing(polled):
        polled.start().until("polling", LONG_S)
        scene = Scene(shop, polled)
        scene.arrives("a")
        scene.arrives("b")
        yield scene
        pids = {entry.get("pid") for entry in polled.said("polling")}
        assert len(polled.said("polling")) == 1, pids  # its session never ended
        assert polled.terminate() == 0


def comes_and_goes(scene: Scene) -> None:
    """Rename a column of `b`, and the table; have it back each time."""
    shop = scene.shop
    shop.execute("ALTER TABLE b RENAME COLUMN v TO w")
    scene.insert("b")
    scene.turns_red("has no column v")
    shop.execute("ALTER TABLE b RENAME COLUMN w TO v")
    scene.arrives("b")
    shop.execute("ALTER TABLE b RENAME TO c")
    scene.turns_red("no table b")
    shop.execute("ALTER TABLE c RENAME TO b")
    scene.arrives("b")


def dropped_last(scene: Scene) -> None:
    """Drop one table, which is red; and the other, with which nothing is left."""
    scene.shop.execute("DROP TABLE b")
    scene.turns_red("no table b")


def test_a_table_of_postgresql_that_is_locked_dropped_or_revoked_stops_no_other(
    postgres18: PostgresServer, kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    with temporary_database(postgres18) as database:
        shop = Postgres(postgres_url(database.dsn), database.dsn)
        create(shop)
        role = f"reader_{database.name}"
        database.execute(
            f"CREATE ROLE {role} LOGIN; GRANT SELECT ON a, b TO {role};"
            f"GRANT pg_read_all_stats TO {role}"
        )
        shop.url = postgres_url(database.dsn, user=role)
        try:
            with scene_of(shop, kafka, tmp_path, topic_prefix) as scene:
                with shop.locked():
                    scene.turns_red("lock", "'b'")
                    assert "pg_locks" in scene.table("b").repair
                    for _ in range(3):
                        scene.arrives("a")
                scene.arrives("b")
                shop.execute(f"REVOKE SELECT ON b FROM {role}")  # noqa: S608
                scene.turns_red("permission denied")
                repair = scene.table("b").repair
                assert repair.startswith("GRANT")
                assert any(repair in text for text in scene.source().problems)
                shop.execute(repair)
                scene.arrives("b")
                shop.execute("ALTER TABLE b ENABLE ROW LEVEL SECURITY")
                scene.insert("b")
                scene.turns_red('row-level security policy for table "b"')
                repair = scene.table("b").repair
                assert repair == f'ALTER ROLE "{role}" BYPASSRLS;'
                shop.execute(repair)
                scene.arrives("b")
                comes_and_goes(scene)
                dropped_last(scene)
                assert len(scene.polled.said("a table is not polled")) >= 6
        finally:
            database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.mark.fault_long  # as of PostgreSQL and SQLite: by its own errors
def test_a_table_of_mariadb_that_is_locked_or_dropped_stops_no_other(
    mariadb_database: Mariadb, kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    shop = MariadbShop(mariadb_database.url, mariadb_database)
    create(shop)
    with scene_of(shop, kafka, tmp_path, topic_prefix) as scene:
        with shop.locked():
            scene.turns_red("ock wait timeout", "'b'")
            for _ in range(3):
                scene.arrives("a")
        scene.arrives("b")
        comes_and_goes(scene)
        dropped_last(scene)


@pytest.mark.fault_long
@pytest.mark.takes(170)
def test_a_table_of_sqlite_that_is_dropped_stops_no_other_until_none_is_left(
    kafka: KafkaServer, topic_prefix: str, tmp_path: Path
) -> None:
    shop = SqliteShop(f"sqlite:///{file_of(tmp_path)}", file_of(tmp_path))
    create(shop)
    polled = Polled(shop.url, kafka.bootstrap, tmp_path, topic_prefix, tables=TABLES)
    with closing(polled):
        polled.start().until("polling", LONG_S)
        scene = Scene(shop, polled)
        scene.arrives("a")
        scene.arrives("b")
        comes_and_goes(scene)
        dropped_last(scene)
        execute(shop.file, "DROP TABLE a")
        polled.ends_with(2, "there is no table", timeout_s=2 * LONG_S)
