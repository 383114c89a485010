"""A table whose keys change, what a stream says of it, and a mirror that hears it."""

# ruff: noqa: S608 - SQL of constants

import json
import random
from collections import deque
from collections.abc import Callable
from itertools import count
from typing import Any, Final
from zlib import crc32

import psycopg

from consumer.mirror import PostgresMirror
from consumer.op import Op
from tests.support.fixtures.postgres import Database
from tests.support.loads.op import Texts, make
from tests.support.strategies import KeyKind
from walstream.op import Kind

PARTITIONS: Final = 4
_COLUMNS: Final = "format('%%s', key), n::text, org::text"


class Source:
    """A table `source`; what is done to it becomes ops of `public.target`."""

    def __init__(
        self, database: Database, kind: KeyKind, *, by_org: bool = False
    ) -> None:
        database.execute("; ".join(filter(None, [kind.before, _DDL.format(kind.type)])))
        self._database = database
        self._by_org = by_org
        self._lsns = count(1000, 8)
        self._lsn = 0
        self._seq_id = 0
        self.partitions: list[deque[Op]] = [deque() for _ in range(PARTITIONS)]

    def walk(self, choose: random.Random, kind: KeyKind, steps: int) -> None:
        """Write so many random changes, one a transaction."""
        with psycopg.connect(self._database.dsn, autocommit=True) as connection:
            for n in range(steps):
                self._lsn, self._seq_id = next(self._lsns), 0
                self._step(connection, choose, kind, n)

    def _step(
        self,
        connection: psycopg.Connection[Any],
        choose: random.Random,
        kind: KeyKind,
        n: int,
    ) -> None:
        def key() -> str:
            return choose.choice(choose.choice(kind.spellings))

        here = f"WHERE key = %s::{kind.type.partition(' ')[0]}"
        old = _row(connection, f"SELECT {_COLUMNS} FROM source {here}", key())
        org = choose.randrange(3)
        if old is None:
            insert = f"INSERT INTO source VALUES (%s, %s, %s) RETURNING {_COLUMNS}"
            spelt = key()
            taken = f"SELECT 1 FROM source {here}"
            if connection.execute(taken, (spelt,)).rowcount == 0:
                self._tell(None, _row(connection, insert, spelt, n, org))
        elif choose.random() < 0.2:
            connection.execute(f"DELETE FROM source {here}", (old["key"],))
            self._tell(old, None)
        else:
            group = next(some for some in kind.spellings if old["key"] in some)
            update = (
                f"UPDATE source SET key = %s, n = %s, org = %s {here}"
                f" RETURNING {_COLUMNS}"
            )
            spelt = choose.choice(group)
            self._tell(old, _row(connection, update, spelt, n, org, old["key"]))

    def _tell(self, old: Texts | None, new: Texts | None) -> None:
        """Split what changes the record's key, as the stream does."""
        if old and new and self._record_key(old) == self._record_key(new):
            self._send(Kind.UPDATE, new, old=old, new=new)
            return
        if old:
            self._send(Kind.DELETE, old, old=old)
        if new:
            self._send(Kind.INSERT, new, new=new)

    def _record_key(self, row: Texts) -> list[str | None]:
        return [row["org"] if self._by_org else row["key"]]

    def _send(self, kind: Kind, row: Texts, **rows: Texts) -> None:
        key = self._record_key(row)
        partition = crc32(json.dumps(key).encode()) % PARTITIONS
        op = make(
            kind,
            "public.target",
            **rows,
            key=key,
            lsn=self._lsn,
            seq_id=self._seq_id,
            partition=partition,
        )
        self._seq_id += 1
        self.partitions[partition].append(op)

    def contents(self, table: str) -> list[tuple[Any, ...]]:
        columns = _COLUMNS.replace("%%", "%")
        return sorted(self._database.fetch(f"SELECT {columns} FROM {table}"))


_DDL: Final = """
CREATE TABLE source (key {0} PRIMARY KEY, n int, org int);
CREATE TABLE target (LIKE source INCLUDING ALL)
"""


def _row(
    connection: psycopg.Connection[Any], query: str, *params: object
) -> dict[str, str | None] | None:
    found = connection.execute(query, params).fetchone()
    return dict(zip(("key", "n", "org"), found, strict=True)) if found else None


def drain(
    database: Database, source: Source, choose: random.Random, **options: Any
) -> None:
    """Give the partitions' ops to two mirrors, in batches, whichever comes first."""
    mirrors = [PostgresMirror(database.dsn, **options) for _ in range(2)]
    with psycopg.connect(database.dsn) as tx:
        while waiting := [ops for ops in source.partitions if ops]:
            ops = choose.choice(waiting)
            batch = [ops.popleft() for _ in range(min(len(ops), choose.randint(1, 9)))]
            apply(tx, mirrors[source.partitions.index(ops) % 2], batch)


def apply(tx: psycopg.Connection[Any], mirror: PostgresMirror, batch: list[Op]) -> None:
    """Handle ops as the consumer does: one transaction, with what is around it."""
    hooks: Callable[..., object]
    with tx.transaction():
        hooks = getattr(mirror, "begin_batch", lambda *_: None)
        hooks(tx, batch)
        for op in batch:
            mirror.handle_message(tx, op)
        hooks = getattr(mirror, "end_batch", lambda *_: None)
        hooks(tx)
