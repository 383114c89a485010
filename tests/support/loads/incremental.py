"""Two tables with toasted values, who writes to them, and what becomes of them."""

import random
from collections.abc import Iterable
from functools import partial
from typing import Any, Final

import psycopg
from psycopg import sql

from consumer import Op, Transaction
from tests.support.fixtures.postgres import Database
from tests.support.oracles.topic_reader import Record
from tests.support.threads import Writers
from walstream.op import Kind
from walstream.row import NotSent

TABLES: Final = ("early", "late")
SCHEMA: Final = "".join(
    f"CREATE TABLE {name} (part int, id int, n int, note text, big text,"
    " PRIMARY KEY (id, part));"
    f"ALTER TABLE {name} ALTER big SET STORAGE EXTERNAL;"
    for name in TABLES
)
_BIG: Final = 2500  # bytes, and more: kept apart from the row
_KEYS: Final = 60  # of each writer

Rows = dict[tuple[str, ...], dict[str, Any]]
Names = Iterable[str]


def fill(database: Database, rows: int) -> None:
    """Have rows that no writer of a load ever touches, and some that they do."""
    for name in TABLES:
        database.execute(
            sql.SQL(
                "INSERT INTO {} SELECT 99, i, i, 'n' || i,"
                " CASE WHEN i %% 50 = 0 THEN repeat('b', 3000) END"
                " FROM generate_series(1, %s) i"
            ).format(sql.Identifier(name)),
            rows,
        )
        database.execute(
            sql.SQL(
                "INSERT INTO {} SELECT w, i, 0, 'old', repeat('o', 3000)"
                " FROM generate_series(0, 3) w, generate_series(0, %s) i"
            ).format(sql.Identifier(name)),
            _KEYS - 1,
        )


class Load(Writers):
    """Writers in threads, each with rows of its own in both tables."""

    def __init__(self, database: Database, writers: int = 4) -> None:
        super().__init__(*(partial(self._write, number) for number in range(writers)))
        self._dsn = database.dsn

    def _write(self, number: int) -> None:
        choose = random.Random(number)  # noqa: S311 - a test's load
        with psycopg.connect(self._dsn) as connection:
            while not self.leaving.is_set():
                for _ in range(choose.randint(1, 4)):
                    _change(connection, number, choose)
                if choose.random() < 0.1:
                    connection.rollback()
                else:
                    connection.commit()
                self.transactions += 1
                self.leaving.wait(choose.random() * 0.01)


def _change(
    connection: psycopg.Connection[Any], number: int, choose: random.Random
) -> None:
    table = sql.Identifier(choose.choice(TABLES))
    key, other = choose.randrange(_KEYS), choose.randrange(_KEYS)
    fresh = choose.randrange(1_000_000)
    big = chr(choose.randint(97, 122)) * _BIG + str(fresh)
    kind = choose.random()
    statement, values = "", dict[str, Any](part=number, key=key, n=fresh, big=big)
    if kind < 0.45:  # leaves the toasted value alone
        statement = "UPDATE {} SET n = %(n)s WHERE part = %(part)s AND id = %(key)s"
    elif kind < 0.55:
        statement = "UPDATE {} SET big = %(big)s WHERE part = %(part)s AND id = %(key)s"
    elif kind < 0.7:
        statement = "DELETE FROM {} WHERE part = %(part)s AND id = %(key)s"
    elif kind < 0.9:
        statement = (
            "INSERT INTO {} VALUES (%(part)s, %(key)s, %(n)s, 'new', %(big)s)"
            " ON CONFLICT DO NOTHING"
        )
    else:
        values["other"] = other
        statement = (
            "UPDATE {t} SET id = %(other)s, n = %(n)s WHERE part = %(part)s"
            " AND id = %(key)s AND NOT EXISTS (SELECT FROM {t}"
            " WHERE part = %(part)s AND id = %(other)s)"
        )
    connection.execute(sql.SQL(statement).format(table, t=table), values)


def stored(database: Database, table: str) -> Rows:
    """Give a table's rows by key."""
    columns = ("part", "id", "n", "note", "big")
    query = sql.SQL("SELECT part::text, id::text, n::text, note, big FROM {}")
    return {
        (row[0], row[1]): dict(zip(columns, row, strict=True))
        for row in database.fetch(query.format(sql.Identifier(table)))
    }


def folded(records: Iterable[Record], table: str) -> Rows:
    """Apply a table's records in the order given; partitions come as they will."""
    rows: Rows = {}
    where: dict[tuple[str, ...], int] = {}
    for record in records:
        if record.op.table.name != table:
            continue
        if record.kind is Kind.TRUNCATE:
            for key in [k for k in rows if where[k] == record.partition]:
                del rows[key]
            continue
        new, old = record.new, record.old
        row = old if record.kind is Kind.DELETE else new
        key = (row["part"], row["id"])
        where[key] = record.partition
        if record.kind is Kind.DELETE:
            rows.pop(key, None)
        elif record.kind is Kind.INSERT:
            rows[key] = new
        else:
            before = rows.get(key, {})
            rows[key] = {
                name: before.get(name) if isinstance(value, NotSent) else value
                for name, value in new.items()
            }
    return rows


def follow(tx: Transaction, op: Op) -> None:
    """Apply an op to the table of its name; of a row that is not there, no part."""
    names = {"t": sql.Identifier(op.table.name)}
    if op.kind is Kind.TRUNCATE:
        tx.execute(sql.SQL("DELETE FROM {t}").format(**names))
        return
    row = dict((op.old if op.kind is Kind.DELETE else op.new).items())
    if op.kind is Kind.UPDATE and op.new.absent:
        setting = sql.SQL(", ").join(
            sql.SQL("{} = {}").format(sql.Identifier(name), sql.Placeholder(name))
            for name in row
        )
        statement = "UPDATE {t} SET {set} WHERE part = %(part)s AND id = %(id)s"
        tx.execute(sql.SQL(statement).format(**names, set=setting), row)
        return
    statement = "DELETE FROM {t} WHERE part = %(part)s AND id = %(id)s"
    tx.execute(sql.SQL(statement).format(**names), row)
    if op.kind is not Kind.DELETE:
        statement = (
            "INSERT INTO {t} VALUES (%(part)s, %(id)s, %(n)s, %(note)s, %(big)s)"
        )
        tx.execute(sql.SQL(statement).format(**names), row)


def misplaced(records: Iterable[Record]) -> list[Record]:
    """Find snapshot rows behind an op of a greater LSN, or before one of a lower.

    For records of one partition, in their order, without a replay.
    """
    highest = 0
    found = []
    for record in records:
        if record.op.lsn < highest:
            found.append(record)
        highest = max(highest, record.op.lsn)
    return found
