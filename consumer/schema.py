"""The state tables in the application's database, made on first use.

The first columns of replication_consumer_state are shared with consumers in other
languages; a table that they made gets the columns it lacks.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, LiteralString, NamedTuple

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow, tuple_row

from consumer.lock import lock_key
from walstream.errors import Repair

_STATE_COLUMNS: Final = {
    "next_offset": "int8",  # the offset after the last record that was seen through
    "topic_id": "text",
    "source": "text",  # walstream-source: system_identifier/database/epoch
}
_TABLES: Final = {
    "replication_consumer_state": (
        "id uuid NOT NULL, group_id text NOT NULL, topic text NOT NULL,"
        " partition int4 NOT NULL, lsn text NOT NULL, seq_id text NOT NULL,"
        " next_offset int8, topic_id text, source text,"
        " PRIMARY KEY (group_id, topic, partition)"
    ),
    "replication_consumer_snapshot": (
        "group_id text NOT NULL, topic text NOT NULL, partition int4 NOT NULL,"
        " lsn text NOT NULL, chunk int8 NOT NULL, idx int8 NOT NULL,"
        " PRIMARY KEY (group_id, topic, partition, lsn, chunk)"
    ),
    # a row for each partition that arrived, and one of partition -1: it was run
    "replication_consumer_barrier": (
        "group_id text NOT NULL, topic text NOT NULL, lsn text NOT NULL,"
        " seq_id text NOT NULL, source text NOT NULL, partition int4 NOT NULL,"
        " PRIMARY KEY (group_id, topic, lsn, seq_id, source, partition)"
    ),
}


_FOUND: Final = (
    "SELECT n.nspname FROM unnest(%s::text[]) WITH ORDINALITY AS name (name, number)"
    " JOIN pg_class c ON c.oid = to_regclass(name)"
    " JOIN pg_namespace n ON n.oid = c.relnamespace ORDER BY number"
)


class Tables(NamedTuple):
    """The schema of each table: a handler may change the search_path."""

    state: str
    snapshot: str
    barrier: str

    def execute(
        self,
        tx: psycopg.Connection[Any],
        statement: LiteralString,
        values: Sequence[object] | Mapping[str, object] = (),
    ) -> psycopg.Cursor[TupleRow]:
        """Run a statement that says {state}, {snapshot}, {barrier} for the tables."""
        # a cursor of our own: the connection's row_factory is the handler's to set
        return tx.cursor(row_factory=tuple_row).execute(
            _filled(self, statement), values
        )


@lru_cache(1000)
def _filled(tables: Tables, statement: LiteralString) -> bytes:
    names = {
        field: sql.Identifier(schema, name)
        for (field, schema), name in zip(tables._asdict().items(), _TABLES, strict=True)
    }
    return sql.SQL(statement).format(**names).as_bytes()


def make_tables(connection: psycopg.Connection[Any]) -> Tables:
    """Create what is missing, and tell where the tables are.

    Nothing is missing, and no right to create is needed, mostly.
    """
    if not _complete(connection):
        _create(connection)
    found = connection.execute(_FOUND, (list(_TABLES),)).fetchall()
    return Tables(*(schema for (schema,) in found))


def _create(connection: psycopg.Connection[Any]) -> None:
    with connection.transaction():
        # two that start at once: CREATE TABLE IF NOT EXISTS alone may collide
        connection.execute(
            "SELECT pg_advisory_xact_lock(%s)", (lock_key("", "replication", "tables"),)
        )
        for name, columns in _TABLES.items():
            connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
        for name, kind in _STATE_COLUMNS.items():
            connection.execute(
                "ALTER TABLE replication_consumer_state"
                f" ADD COLUMN IF NOT EXISTS {name} {kind}"
            )


def _complete(connection: psycopg.Connection[Any]) -> bool:
    found = connection.execute(
        "SELECT count(to_regclass(name)) = count(*) AND (SELECT count(*) = %s"
        " FROM pg_attribute WHERE attname = ANY(%s::text[]) AND attnum > 0 AND attrelid"
        " = to_regclass('replication_consumer_state')) FROM unnest(%s::text[]) name",
        (len(_STATE_COLUMNS), list(_STATE_COLUMNS), list(_TABLES)),
    ).fetchone()
    return bool(found and found[0])


def reset(group: str, topic: str) -> Repair:
    """Tell how a group forgets a topic: it reads it again from the first record."""
    where = f"WHERE group_id = {_literal(group)} AND topic = {_literal(topic)};"
    return Repair(sql="\n".join(f"DELETE FROM {name} {where}" for name in _TABLES))  # noqa: S608 - constants


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
