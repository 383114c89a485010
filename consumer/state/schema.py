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

from consumer.pg_catalog import ABOVE, IS
from consumer.state.advisory_lock import lock_key
from walstream.errors import Repair

_STATE_COLUMNS: Final = {
    "next_offset": "bigint",  # the offset after the last record that was seen through
    "topic_id": "pg_catalog.text",
    "source": "pg_catalog.text",  # walstream-source: system_identifier/database/epoch
}
_TEXT: Final = "pg_catalog.text NOT NULL"
_TABLES: Final = {
    "replication_consumer_state": (
        f"id pg_catalog.uuid NOT NULL, group_id {_TEXT}, topic {_TEXT},"
        f" partition integer NOT NULL, lsn {_TEXT}, seq_id {_TEXT}, next_offset bigint,"
        " topic_id pg_catalog.text, source pg_catalog.text,"
        " PRIMARY KEY (group_id, topic, partition)"
    ),
    "replication_consumer_snapshot": (
        f"group_id {_TEXT}, topic {_TEXT}, partition integer NOT NULL,"
        f" lsn {_TEXT}, chunk bigint NOT NULL, idx bigint NOT NULL,"
        " PRIMARY KEY (group_id, topic, partition, lsn, chunk)"
    ),
    # a row for each partition that arrived, and one of partition -1: it was run
    "replication_consumer_barrier": (
        f"group_id {_TEXT}, topic {_TEXT}, lsn {_TEXT},"
        f" seq_id {_TEXT}, source {_TEXT}, partition integer NOT NULL,"
        " PRIMARY KEY (group_id, topic, lsn, seq_id, source, partition)"
    ),
}


_FOUND: Final = (
    "SELECT n.nspname FROM pg_catalog.unnest(%s::pg_catalog.text[])"  # noqa: S608 - constants
    " WITH ORDINALITY AS wanted (name, number)"
    f" JOIN pg_catalog.pg_class c ON c.oid {IS} pg_catalog.to_regclass(wanted.name)"
    f" JOIN pg_catalog.pg_namespace n ON n.oid {IS} c.relnamespace ORDER BY number"
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
            "SELECT pg_catalog.pg_advisory_xact_lock(%s)",
            (lock_key("", "replication", "tables"),),
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
        "SELECT pg_catalog.count(pg_catalog.to_regclass(name))"  # noqa: S608 - constants
        f" {IS} pg_catalog.count(*) AND (SELECT pg_catalog.count(*) {IS} %s"
        f" FROM pg_catalog.pg_attribute WHERE attname {IS} ANY(%s::pg_catalog.text[])"
        f" AND attnum {ABOVE} 0 AND attrelid"
        f" {IS} pg_catalog.to_regclass('replication_consumer_state'))"
        " FROM pg_catalog.unnest(%s::pg_catalog.text[]) name",
        (len(_STATE_COLUMNS), list(_STATE_COLUMNS), list(_TABLES)),
    ).fetchone()
    return bool(found and found[0])


def reset(group: str, topic: str) -> Repair:
    """Return how a group forgets a topic: it reads it again from the first record."""
    where = f"WHERE group_id = {_literal(group)} AND topic = {_literal(topic)};"
    return Repair(sql="\n".join(f"DELETE FROM {name} {where}" for name in _TABLES))  # noqa: S608 - constants


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
