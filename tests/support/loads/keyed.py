"""A seeded load: writers whose transactions interleave, on one keyed table.

Inserts, updates, key changes, deletes, savepoint rollbacks and plain rollbacks. What
was committed is not noted here: the server's own slot tells that
(tests.support.oracles.op_order).
"""

import contextlib
import random
from functools import partial
from typing import Any, Final, Self

import psycopg

from tests.support.threads import Writers

TABLE: Final = "CREATE TABLE load (id bigint PRIMARY KEY, n int NOT NULL, note text)"
_KEYS: Final = 500  # of each writer
_OUTAGE = (psycopg.OperationalError, psycopg.InterfaceError)


class Load(Writers):
    """Writers in threads; they outlive a server that goes away and comes back."""

    def __init__(
        self, dsn: str, seed: int, writers: int = 4, pause_s: float = 0.002
    ) -> None:
        super().__init__(
            *(partial(self._write, writer, seed) for writer in range(writers))
        )
        self._dsn = dsn
        self._pause_s = pause_s

    def __enter__(self) -> Self:
        super().__enter__()
        self.wait_for_more(1)
        return self

    def _write(self, writer: int, seed: int) -> None:
        choose = random.Random(f"{seed}/{writer}")  # noqa: S311 - a test's load
        while not self.leaving.is_set():
            with (
                contextlib.suppress(*_OUTAGE),
                psycopg.connect(self._dsn, connect_timeout=5) as connection,
            ):
                while not self.leaving.is_set():
                    self._transaction(connection, writer, choose)
                    self.transactions += 1
                    self.leaving.wait(choose.random() * 2 * self._pause_s)
            self.leaving.wait(0.1)

    def _transaction(
        self, connection: psycopg.Connection[Any], writer: int, choose: random.Random
    ) -> None:
        for _ in range(choose.randint(1, 8)):
            _change(connection, writer, choose)
        if choose.random() < 0.2:
            with (
                contextlib.suppress(psycopg.Rollback),
                connection.transaction() as part,
            ):
                _change(connection, writer, choose)
                raise psycopg.Rollback(part)
        if choose.random() < 0.1:
            connection.rollback()
        else:
            connection.commit()


def _change(
    connection: psycopg.Connection[Any], writer: int, choose: random.Random
) -> None:
    low = writer * 1_000_000
    key = low + choose.randrange(_KEYS)
    kind = choose.random()
    if kind < 0.5:
        connection.execute(
            "INSERT INTO load VALUES (%s, %s, %s) ON CONFLICT (id) DO UPDATE"
            " SET n = excluded.n",
            (key, choose.randrange(1000), "x" * choose.randrange(200)),
        )
    elif kind < 0.75:
        connection.execute("UPDATE load SET n = n + 1 WHERE id = %s", (key,))
    elif kind < 0.85:
        connection.execute("DELETE FROM load WHERE id = %s", (key,))
    else:
        other = low + choose.randrange(_KEYS)
        connection.execute(
            "UPDATE load SET id = %s WHERE id = %s"
            " AND NOT EXISTS (SELECT FROM load WHERE id = %s)",
            (other, key, other),
        )
