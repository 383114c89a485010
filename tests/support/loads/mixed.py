"""A seeded mix of writes by interleaved transactions, from one thread.

The same seed makes the same statements in the same order. A row that an open
transaction may have locked is left alone by the others, so nothing ever waits.
"""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import psycopg

from tests.support.fixtures.postgres import Database

# one a replica identity: default, full, index
SCHEMA: Final = """
CREATE TABLE by_default (id int PRIMARY KEY, n numeric, t text);
CREATE TABLE by_full (id int PRIMARY KEY, n numeric, t text);
ALTER TABLE by_full REPLICA IDENTITY FULL;
CREATE TABLE by_index (id int NOT NULL, n numeric, t text, UNIQUE (id));
ALTER TABLE by_index REPLICA IDENTITY USING INDEX by_index_id_key;
"""
TABLES: Final = ("by_default", "by_full", "by_index")
_MOVE: Final = (
    "UPDATE {t} SET id = %s, n = %s WHERE id = %s"
    " AND NOT EXISTS (SELECT FROM {t} WHERE id = %s)"
)
_KEYS: Final = 40
_WRITERS: Final = 4
_TEXTS: Final = (
    None,
    "",
    "it's",
    'q"uo\\te',
    "new\nline ",
    "\u00e9 \U0001f642",
    "=' x",
)


class _Writer:
    """One connection, in a transaction from its first write to its end."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self.locked: set[tuple[str, int]] = set()
        self.savepoints = 0

    def end(self, how: str) -> None:
        self.connection.execute(how.encode())
        self.locked.clear()
        self.savepoints = 0


class Load:
    """Writes on by `steps`; open transactions stay open between calls."""

    def __init__(self, connections: list[psycopg.Connection], seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - to repeat, not to hide
        self._writers = [_Writer(connection) for connection in connections]
        self._copied = _KEYS

    def write(self, steps: int) -> None:
        for _ in range(steps):
            self._step(self._random.choice(self._writers))

    def finish(self) -> None:
        """Commit what is open."""
        for writer in self._writers:
            writer.end("COMMIT")

    def _step(self, writer: _Writer) -> None:
        dice = self._random.random()
        if dice < 0.12:
            writer.end("COMMIT" if dice < 0.1 else "ROLLBACK")
        elif dice < 0.22:
            self._savepoint(writer)
        elif dice < 0.25:
            self._copy(writer)
        else:
            self._change(writer)

    def _savepoint(self, writer: _Writer) -> None:
        if writer.savepoints and self._random.random() < 0.6:
            to = self._random.randint(1, writer.savepoints)
            how = self._random.choice(["ROLLBACK TO", "ROLLBACK TO", "RELEASE"])
            writer.connection.execute(f"{how} s{to}".encode())
            writer.savepoints = to - (how == "RELEASE")
        else:
            writer.savepoints += 1
            writer.connection.execute(f"SAVEPOINT s{writer.savepoints}".encode())

    def _copy(self, writer: _Writer) -> None:
        table = self._random.choice(TABLES)
        copy = f"COPY {table} FROM STDIN"
        with (
            writer.connection.cursor() as cursor,
            cursor.copy(copy.encode()) as rows,
        ):
            for _ in range(self._random.randint(1, 30)):
                self._copied += 1
                rows.write_row((self._copied, *self._values()))

    def _change(self, writer: _Writer) -> None:
        table = self._random.choice(TABLES)
        one, other = self._free(writer, table), self._free(writer, table)
        number, text = self._values()
        statement, values = self._random.choice(
            (
                (
                    "INSERT INTO {t} VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
                    (one, number, text),
                ),
                ("UPDATE {t} SET n = %s, t = %s WHERE id = %s", (number, text, one)),
                ("UPDATE {t} SET t = t || 'x' WHERE id = %s", (one,)),
                (
                    _MOVE,
                    (other, number, one, other),
                ),
                ("DELETE FROM {t} WHERE id = %s", (one,)),
            )
        )
        writer.connection.execute(statement.format(t=table).encode(), values)

    def _free(self, writer: _Writer, table: str) -> int:
        """Choose a key that no other open transaction wrote, and keep it."""
        taken = set().union(*(w.locked for w in self._writers if w is not writer))
        keys = [key for key in range(1, _KEYS) if (table, key) not in taken]
        key = self._random.choice(keys or [0])
        writer.locked.add((table, key))
        return key

    def _values(self) -> tuple[str | None, str | None]:
        numbers = (None, "0", "-1.50", "12345678901234567890", "NaN")
        return self._random.choice(numbers), self._random.choice(_TEXTS)


@contextmanager
def loading(database: Database, seed: int) -> Iterator[Load]:
    connections = [psycopg.connect(database.dsn) for _ in range(_WRITERS)]
    try:
        yield Load(connections, seed)
    finally:
        for connection in connections:
            connection.close()
