"""State of a group that reads whole transactions: the position, and the fence.

The group's row is moved in the transaction of the effects, by compare-and-set, under an
advisory lock: of two processes of a group one takes effect. Offsets of partitions are
where to read on: what took effect is told by the LSN, and for backfilled rows by the
chunks.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import TupleRow, tuple_row

from consumer.group.assigned_partition import Place
from consumer.pg_catalog import BELOW, IS, PLUS, unnest
from consumer.state.advisory_lock import lock_key
from consumer.state.connection import was_committed
from consumer.state.position import SnapshotChunk, bygone
from walstream.errors import ConfigError, Repair
from walstream.lsn import Lsn

_TEXT: Final = "pg_catalog.text NOT NULL"
_TABLES: Final = {
    "replication_consumer_transaction": (
        f"group_id pg_catalog.text PRIMARY KEY, topic {_TEXT}, lsn {_TEXT},"
        " version bigint NOT NULL, next_offset bigint NOT NULL,"
        " topic_id pg_catalog.text, source pg_catalog.text"
    ),
    "replication_consumer_transaction_place": (
        f"group_id {_TEXT}, topic {_TEXT}, partition integer NOT NULL,"
        f" since {_TEXT}, next_offset bigint NOT NULL, topic_id pg_catalog.text,"
        " source pg_catalog.text, PRIMARY KEY (group_id, topic, partition)"
    ),
    "replication_consumer_transaction_chunk": (
        f"group_id {_TEXT}, topic {_TEXT}, partition integer NOT NULL,"
        f" lsn {_TEXT}, chunk bigint NOT NULL, idx bigint NOT NULL,"
        " PRIMARY KEY (group_id, topic, partition, lsn, chunk)"
    ),
}
_FIELDS: Final = ("row", "place", "chunk")  # of statements, in the tables' order
_FOUND: Final = (
    "SELECT n.nspname FROM pg_catalog.unnest(%s::pg_catalog.text[])"  # noqa: S608 - constants
    " WITH ORDINALITY AS wanted (name, number)"
    f" JOIN pg_catalog.pg_class c ON c.oid {IS} pg_catalog.to_regclass(wanted.name)"
    f" JOIN pg_catalog.pg_namespace n ON n.oid {IS} c.relnamespace ORDER BY number"
)
_LOCK: Final = (
    "SELECT CASE WHEN pg_catalog.pg_try_advisory_xact_lock(%s)"
    " THEN pg_catalog.pg_current_xact_id()::pg_catalog.text END"
)
_READ: Final = (
    "SELECT topic, lsn, version, next_offset, topic_id, source FROM {row}"  # noqa: S608 - constants
    f" WHERE group_id {IS} %s"
)
_INSERT: Final = (
    "INSERT INTO {row} (group_id, topic, lsn, version, next_offset)"
    " VALUES (%s, %s, '0', 0, 0) ON CONFLICT DO NOTHING"
)
_MOVE: Final = (
    "UPDATE {row} SET lsn = %s, next_offset = %s, topic_id = %s, source = %s,"  # noqa: S608 - constants
    f" version = version {PLUS} 1 WHERE group_id {IS} %s AND version {IS} %s"
    f" AND pg_catalog.pg_current_xact_id()::pg_catalog.text {IS} %s"
)
_READ_PLACES: Final = (
    "SELECT topic, partition, since, next_offset, topic_id, source FROM {place}"  # noqa: S608 - constants
    f" WHERE group_id {IS} %s"
)
_KEEP_PLACES: Final = (
    "INSERT INTO {place}"  # noqa: S608 - constants
    " (group_id, topic, partition, since, next_offset, topic_id, source)"
    " SELECT %s, topic, partition, since, next_offset, topic_id, source FROM "
    + unnest(
        "%s::pg_catalog.text[]",
        "%s::integer[]",
        "%s::pg_catalog.text[]",
        "%s::bigint[]",
        "%s::pg_catalog.text[]",
        "%s::pg_catalog.text[]",
    )
    + " AS kept (topic, partition, since, next_offset, topic_id, source)"
    " ON CONFLICT (group_id, topic, partition) DO UPDATE"
    " SET since = EXCLUDED.since, next_offset = EXCLUDED.next_offset,"
    " topic_id = EXCLUDED.topic_id, source = EXCLUDED.source"
)
_CHUNK: Final = f"group_id {IS} %s AND topic {IS} %s AND partition {IS} %s"
_READ_CHUNK: Final = (
    f"SELECT idx FROM {{chunk}} WHERE {_CHUNK} AND lsn {IS} %s AND chunk {IS} %s"  # noqa: S608 - constants
)
_KEEP_CHUNK: Final = (
    "INSERT INTO {chunk} (group_id, topic, partition, lsn, chunk, idx)"
    " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT"
    " (group_id, topic, partition, lsn, chunk) DO UPDATE SET idx = EXCLUDED.idx"
)
_FORGET_BYGONE: Final = (
    f"DELETE FROM {{chunk}} WHERE {_CHUNK} AND lsn::numeric {BELOW} %s"  # noqa: S608 - constants
)
_FORGET_CHUNKS: Final = f"DELETE FROM {{chunk}} WHERE group_id {IS} %s"  # noqa: S608 - constants

_REACH: Final = (
    "SELECT topic, partition, pg_catalog.max(lsn::numeric) FROM {chunk}"  # noqa: S608 - constants
    f" WHERE group_id {IS} %s GROUP BY topic, partition"
)
_CLEANED_EVERY: Final = 1 << 28  # bytes of WAL

NEVER: Final = -1  # the index before a chunk's first row


@dataclass(frozen=True, slots=True)
class PlaceRow:
    """A partition's row."""

    next_offset: int
    since: Lsn = 0  # the position when the group began to read the topic
    topic_id: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class GroupRow:
    """A group's row, and those of its partitions."""

    lsn: Lsn
    version: int
    next_offset: int  # in the transaction topic
    topic_id: str | None = None
    source: str | None = None
    places: Mapping[Place, PlaceRow] = field(default_factory=dict)


class GroupState:
    """The state of one group."""

    def __init__(self, group: str, transactions: str) -> None:
        self.group = group
        self._transactions = transactions
        self.all_places = Place(transactions, -1)  # whose ops have one order
        self._schemas: tuple[str, ...] = ()
        self._lock = lock_key(group, transactions, "transactions")
        self._statements: dict[str, bytes] = {}
        self._clean_from: dict[Place, Lsn] = {}

    def make(self, connection: psycopg.Connection[Any]) -> None:
        """Create the tables that are missing."""
        names = [*_TABLES]
        if len(connection.execute(_FOUND, (names,)).fetchall()) < len(names):
            with connection.transaction():
                connection.execute(
                    "SELECT pg_catalog.pg_advisory_xact_lock(%s)",
                    (lock_key("", "replication", "tables"),),
                )
                for name, columns in _TABLES.items():
                    connection.execute(f"CREATE TABLE IF NOT EXISTS {name} ({columns})")
        found = connection.execute(_FOUND, (names,)).fetchall()
        self._schemas = tuple(schema for (schema,) in found)
        self._statements.clear()

    def read(self, tx: psycopg.Connection[Any]) -> GroupRow:
        """Read the row; make it where there is none."""
        found = self._run(tx, _READ, (self.group,)).fetchone()
        if found is None:
            self._run(tx, _INSERT, (self.group, self._transactions))
            found = self._run(tx, _READ, (self.group,)).fetchone()
        if found is None:
            raise psycopg.errors.SerializationFailure("the group's row was deleted")
        topic, lsn, version, next_offset, topic_id, source = found
        if topic != self._transactions:
            raise ConfigError(
                f"group {self.group} reads the transactions of {topic}, not those of"
                f" {self._transactions}",
                hint="name another group: it begins with the oldest records",
            )
        places = {
            Place(topic, number): PlaceRow(offset, int(since), identity, named)
            for topic, number, since, offset, identity, named in self._run(
                tx, _READ_PLACES, (self.group,)
            )
        }
        return GroupRow(int(lsn), version, next_offset, topic_id, source, places)

    def lock(self, tx: psycopg.Connection[Any]) -> str | None:
        """Lock the group till the transaction's end; give its id, None: taken."""
        row = self._run(tx, _LOCK, (self._lock,)).fetchone()
        return row[0] if row else None

    def committed(self, tx: psycopg.Connection[Any], xid: str) -> bool:
        """Return whether this transaction was committed, as far as can be told."""
        return was_committed(self._run, tx, xid)

    def move(
        self, tx: psycopg.Connection[Any], xid: str, before: GroupRow, after: GroupRow
    ) -> GroupRow | None:
        """Move the row and what differs of the partitions; None: it was moved.

        Nor in another transaction than the one that took the lock.
        """
        values = (str(after.lsn), after.next_offset, after.topic_id, after.source)
        wanted = (*values, self.group, before.version, xid)
        if self._run(tx, _MOVE, wanted).rowcount != 1:
            return None
        changed = [
            (*place, str(row.since), row.next_offset, row.topic_id, row.source)
            for place, row in after.places.items()
            if before.places.get(place) != row
        ]
        if changed:
            columns = [list(column) for column in zip(*changed, strict=True)]
            self._run(tx, _KEEP_PLACES, (self.group, *columns))
        return replace(after, version=before.version + 1)

    def read_chunk(
        self, tx: psycopg.Connection[Any], place: Place, chunk: SnapshotChunk
    ) -> int:
        """Return the index of the last row of this chunk that took effect."""
        key = (self.group, *place, str(chunk.lsn), chunk.number)
        row = self._run(tx, _READ_CHUNK, key).fetchone()
        return row[0] if row else NEVER

    def reach(self, tx: psycopg.Connection[Any]) -> dict[Place, Lsn]:
        """Return the newest snapshot of which rows took effect, by partition."""
        found = self._run(tx, _REACH, (self.group,))
        return {Place(topic, number): int(lsn) for topic, number, lsn in found}

    def keep_chunks(
        self,
        tx: psycopg.Connection[Any],
        place: Place,
        chunks: Mapping[SnapshotChunk, int],
    ) -> None:
        """Note the last rows that took effect; forget chunks that are long past."""
        for chunk, index in chunks.items():
            key = (self.group, *place, str(chunk.lsn), chunk.number, index)
            self._run(tx, _KEEP_CHUNK, key)
            if chunk.lsn >= self._clean_from.get(place, 0):
                past = (self.group, *place, bygone(chunk.lsn))
                self._run(tx, _FORGET_BYGONE, past)
                self._clean_from[place] = chunk.lsn + _CLEANED_EVERY

    def forget_chunks(self, tx: psycopg.Connection[Any]) -> None:
        self._run(tx, _FORGET_CHUNKS, (self.group,))

    def pass_by(self, lsn: Lsn) -> Repair:
        """Return how the group goes on behind a transaction."""
        group = self.group.replace("'", "''")
        statement = (
            f"UPDATE replication_consumer_transaction SET lsn = '{lsn}',"  # noqa: S608 - an operator's
            " version = version + 1"  # so that no other process goes on from before
            f" WHERE group_id = '{group}';"
        )
        return Repair(sql=statement)

    def forget(self, _topic: str = "") -> Repair:
        """Return how the group begins again, with the oldest records."""
        group = self.group.replace("'", "''")
        where = f"WHERE group_id = '{group}';"
        return Repair(sql="\n".join(f"DELETE FROM {name} {where}" for name in _TABLES))  # noqa: S608 - an operator's

    def _run(
        self,
        tx: psycopg.Connection[Any],
        statement: LiteralString,
        values: tuple[object, ...],
    ) -> psycopg.Cursor[TupleRow]:
        filled = self._statements.get(statement)
        if filled is None:
            names = {
                name: sql.Identifier(schema, table)
                for name, schema, table in zip(
                    _FIELDS, self._schemas, _TABLES, strict=True
                )
            }
            filled = sql.SQL(statement).format(**names).as_bytes()
            self._statements[statement] = filled
        # a cursor of our own: the connection's row_factory is the handler's to set
        return tx.cursor(row_factory=tuple_row).execute(filled, values)
