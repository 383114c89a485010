"""Rows of two identities that are written, moved and deleted, until it is stopped."""

# ruff: noqa: S608 - SQL of constants and numbers

import threading
from random import Random
from types import TracebackType
from typing import Any, Final, Self

import psycopg

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database

TABLES: Final = ("by_key", "by_row")
SCHEMA: Final = """
CREATE TABLE by_key (id int PRIMARY KEY, n int, v text);
CREATE TABLE by_row (id int PRIMARY KEY, n int, v text);
ALTER TABLE by_row REPLICA IDENTITY FULL;
"""
_KEYS: Final = 200
_PAUSE_S: Final = 0.01


class KeyedWriter:
    """A thread; each change has a number of its own."""

    def __init__(self, database: Database, seed: int = 7) -> None:
        self._database = database
        self._random = Random(seed)  # noqa: S311 - no secret
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._write)
        self._number = 0
        self.transactions = 0

    def wait_for_more(self, count: int) -> None:
        """Wait until so many more transactions are committed."""
        wanted = self.transactions + count
        wait_until(lambda: self.transactions >= wanted, 120, f"{count} transactions")

    def stop(self) -> None:
        """Return when the last one is committed."""
        self._over.set()
        self._thread.join()

    def _write(self) -> None:
        with psycopg.connect(self._database.dsn, autocommit=True) as connection:
            while not self._over.wait(_PAUSE_S):
                with connection.transaction():
                    for _ in range(self._random.randint(1, 6)):
                        self._change(connection)
                self.transactions += 1

    def _change(self, connection: psycopg.Connection[Any]) -> None:
        table = self._random.choice(TABLES)
        key, other = self._random.randrange(_KEYS), self._random.randrange(_KEYS)
        self._number += 1
        dice = self._random.random()
        if dice < 0.6:
            text = (
                f"INSERT INTO {table} VALUES ({key}, {self._number}, 'v{key}')"
                f" ON CONFLICT (id) DO UPDATE SET n = {self._number}"
            )
        elif dice < 0.8:
            text = (
                f"UPDATE {table} SET id = {other}, n = {self._number} WHERE id = {key}"
                f" AND NOT EXISTS (SELECT FROM {table} WHERE id = {other})"
            )
        else:
            text = f"DELETE FROM {table} WHERE id = {key}"
        connection.execute(text.encode())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
