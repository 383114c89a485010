"""State of a partition in the application's database: the position, and the fence.

The row is read under the lock and moved in the transaction of the effects, by
compare-and-set: a member whose row was moved by another member takes no effect. Callers
hold the transaction; nothing here begins or ends one.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import psycopg

from consumer.group.assigned_partition import Place
from consumer.pg_catalog import ABOVE, BELOW, IS, MINUS, unnest
from consumer.state.advisory_lock import lock_key
from consumer.state.connection import was_committed
from consumer.state.position import NOTHING, AppliedPosition, SnapshotChunk, bygone
from consumer.state.schema import Tables
from walstream.telemetry import runtime

_LOCK: Final = (
    "SELECT CASE WHEN pg_catalog.pg_try_advisory_xact_lock(%s)"
    " THEN pg_catalog.pg_current_xact_id()::pg_catalog.text END"
)
_KEY: Final = f"group_id {IS} %s AND topic {IS} %s AND partition {IS} %s"
_IS_BEGUN: Final = (
    "EXISTS (SELECT FROM {state}"
    f" WHERE group_id {IS} %s AND topic {IS} %s AND next_offset IS NOT NULL)"
)
# of a topic that is begun, it was added: no record of it was ever passed over
_INSERT: Final = (
    "INSERT INTO {state}"  # noqa: S608 - constants
    " (id, group_id, topic, partition, lsn, seq_id, next_offset)"
    f" VALUES (%s, %s, %s, %s, '0', '0', CASE WHEN {_IS_BEGUN} THEN 0 END)"
    " ON CONFLICT DO NOTHING"
)
BEGUN: Final = 0  # as the LSN of a barrier, which no Truncate has; its seq_id: the end
LATE: Final = "late"  # as its source: the partition did not begin with its first record
# in a statement of its own, which nobody can leave open: two members do the same rows
# in the same order, and the later one finds them begun
_FIRST_ROWS: Final = (
    "INSERT INTO {state} AS kept"  # noqa: S608 - constants
    " (id, group_id, topic, partition, lsn, seq_id, next_offset, topic_id)"
    " SELECT one.id, %s::pg_catalog.text, %s::pg_catalog.text, one.partition,"
    " '0', '0', one.next_offset, %s::pg_catalog.text FROM "
    + unnest("%s::pg_catalog.uuid[]", "%s::integer[]", "%s::bigint[]")
    + " AS one (id, partition, next_offset)"
    f" WHERE one.partition {IS} %s OR NOT {_IS_BEGUN}"
    " ON CONFLICT (group_id, topic, partition) DO UPDATE"
    " SET next_offset = EXCLUDED.next_offset,"
    " topic_id = coalesce(kept.topic_id, EXCLUDED.topic_id)"
    " WHERE kept.next_offset IS NULL"
)
# where each partition ended then, if some do not begin with their first record
_BEGIN: Final = (
    f"WITH begun AS ({_FIRST_ROWS}"  # noqa: S608 - constants
    " RETURNING group_id, topic, partition, next_offset, lsn)"
    " INSERT INTO {barrier} (group_id, topic, lsn, seq_id, source, partition)"
    f" SELECT begun.group_id, begun.topic, '{BEGUN}', ends.at::pg_catalog.text,"
    f" CASE WHEN begun.next_offset {ABOVE} 0 THEN '{LATE}' ELSE '' END,"
    " begun.partition FROM begun JOIN "
    + unnest("%s::integer[]", "%s::bigint[]")
    + f" AS ends (partition, at) ON ends.partition {IS} begun.partition"
    f" WHERE begun.lsn {IS} '0'"
    f" AND EXISTS (SELECT FROM begun AS other WHERE other.next_offset {ABOVE} 0)"
    " ON CONFLICT DO NOTHING"
)
_READ: Final = (
    "SELECT id, lsn, seq_id, next_offset, topic_id, source"  # noqa: S608 - constants
    f" FROM {{state}} WHERE {_KEY} FOR UPDATE"
)
_MOVE: Final = (
    "UPDATE {state}"  # noqa: S608 - constants
    " SET lsn = %s, seq_id = %s, next_offset = %s, topic_id = %s, source = %s"
    f" WHERE {_KEY} AND id {IS} %s AND lsn {IS} %s AND seq_id {IS} %s"
    f" AND coalesce(next_offset, -1) {IS} coalesce(%s::bigint, -1)"
    f" AND pg_catalog.pg_current_xact_id()::pg_catalog.text {IS} %s"
)
_SAME_TRANSACTION: Final = (
    f"SELECT pg_catalog.pg_current_xact_id_if_assigned()::pg_catalog.text {IS} %s"
)
_READ_CHUNK: Final = (
    f"SELECT idx FROM {{snapshot}} WHERE {_KEY}"  # noqa: S608 - constants
    f" AND lsn {IS} %s AND chunk {IS} %s"
)
_INSERT_CHUNK: Final = (
    "INSERT INTO {snapshot}"
    " (group_id, topic, partition, lsn, chunk, idx)"
    " VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
)
_MOVE_CHUNK: Final = (
    f"UPDATE {{snapshot}} SET idx = %s WHERE {_KEY}"  # noqa: S608 - constants
    f" AND lsn {IS} %s AND chunk {IS} %s AND idx {IS} %s"
)
_REACH: Final = f"SELECT pg_catalog.max(lsn::numeric) FROM {{snapshot}} WHERE {_KEY}"  # noqa: S608 - constants
_CLEAN: Final = (
    f"DELETE FROM {{snapshot}} WHERE ctid {IS} ANY(ARRAY(SELECT ctid"  # noqa: S608 - constants
    f" FROM {{snapshot}} WHERE {_KEY} AND lsn::numeric {BELOW} %s LIMIT %s))"
)
_CLEANED_AT_ONCE: Final = 10_000
_CLEANED_EVERY: Final = 1 << 28  # bytes of WAL
_FORGET_CHUNKS: Final = f"DELETE FROM {{snapshot}} WHERE {_KEY}"  # noqa: S608 - constants
# in a pipeline, and within a COPY, a session that waits for its client is active
_HOLDERS: Final = (
    "SELECT a.pid, (pg_catalog.starts_with(a.state, 'idle in transaction')"  # noqa: S608 - constants
    f" OR coalesce(a.wait_event_type, '') {IS} 'Client')"
    f" AND a.state_change {BELOW} (pg_catalog.clock_timestamp() {MINUS}"
    " pg_catalog.make_interval(secs => %s))"
    " FROM pg_catalog.pg_locks l"
    f" JOIN pg_catalog.pg_stat_activity a ON a.pid {IS} l.pid"
    f" WHERE l.locktype {IS} 'advisory' AND l.granted AND l.objsubid {IS} 1"
    f" AND l.database {IS} (SELECT oid FROM pg_catalog.pg_database"
    f" WHERE datname {IS} pg_catalog.current_database())"
    f" AND l.classid::bigint {IS} ((%s::bigint OPERATOR(pg_catalog.>>) 32)"
    " OPERATOR(pg_catalog.&) 4294967295)"
    f" AND l.objid::bigint {IS} (%s::bigint OPERATOR(pg_catalog.&) 4294967295)"
)

NEVER: Final = -1  # the index before a chunk's first row


@dataclass(frozen=True, slots=True)
class StateRow:
    """The state row."""

    id: uuid.UUID
    position: AppliedPosition
    next_offset: int | None = None  # None: its topic is not begun yet
    topic_id: str | None = None
    source: str | None = None

    def __str__(self) -> str:
        return (
            f"(lsn {self.position.lsn}, seq_id {self.position.seq_id},"
            f" next offset {self.next_offset})"
        )


UNREAD: Final = StateRow(uuid.UUID(int=0), NOTHING)


@dataclass(frozen=True, slots=True)
class KnownState:
    """A partition's state as a member knows it."""

    row: StateRow  # as it was read or moved last: what compare-and-set compares
    now: StateRow  # with what was not yet worth a transaction
    chunks: dict[SnapshotChunk, int]  # the last row of each that took effect


class PartitionState:
    """The state of one partition of a group."""

    def __init__(self, group: str, place: Place, tables: Tables) -> None:
        self.group = group
        self.tables = tables
        self.place = place
        self._key = (group, place.topic, place.partition)
        self._lock = lock_key(group, place.topic, place.partition)
        self.reach = 0  # the LSN of the newest snapshot that came
        self._clean_from = 0  # an LSN

    def lock(self, tx: psycopg.Connection[Any]) -> str | None:
        """Lock the partition till the transaction's end; give its id, None: taken."""
        row = self.tables.execute(tx, _LOCK, (self._lock,)).fetchone()
        return row[0] if row else None

    def same_transaction(self, tx: psycopg.Connection[Any], xid: str) -> bool:
        """Return whether it is still the transaction that took the lock."""
        row = self.tables.execute(tx, _SAME_TRANSACTION, (xid,)).fetchone()
        return bool(row and row[0])

    def committed(self, tx: psycopg.Connection[Any], xid: str) -> bool:
        """Return whether this transaction was committed, as far as can be told."""
        return was_committed(self.tables.execute, tx, xid)

    def read(self, tx: psycopg.Connection[Any]) -> StateRow:
        """Read the row for update; make one where there is none."""
        found = self.tables.execute(tx, _READ, self._key).fetchone()
        if found is None:
            values = (_drawn(), *self._key, self.group, self.place.topic)
            self.tables.execute(tx, _INSERT, values)
            found = self.tables.execute(tx, _READ, self._key).fetchone()
        if found is None:
            raise psycopg.errors.SerializationFailure("the state row was deleted")
        newest = self.tables.execute(tx, _REACH, self._key).fetchone()
        self.reach = int(newest[0] or 0) if newest else 0
        self._clean_from = 0
        identity, lsn, seq_id, next_offset, topic_id, source = found
        position = AppliedPosition(int(lsn), int(seq_id))
        return StateRow(identity, position, next_offset, topic_id, source)

    def begin(
        self,
        tx: psycopg.Connection[Any],
        bounds: Mapping[int, tuple[int, int]],
        topic_id: str | None,
    ) -> None:
        """Store where the topic is begun, for all its partitions at once.

        `bounds` are first offsets and ends by partition, asked before. Where the topic
        is begun it is done for this partition alone, if its row has no offset: of an
        earlier version. Where some do not begin with their first record, that is kept:
        a Truncate that others still have may be deleted there.
        """
        parts = sorted(bounds)
        values = (
            *(self.group, self.place.topic, topic_id),
            *([_drawn() for _ in parts], parts, [bounds[part][0] for part in parts]),
            *(self.place.partition, self.group, self.place.topic),
            *(parts, [bounds[part][1] for part in parts]),
        )
        self.tables.execute(tx, _BEGIN, values)

    def move(
        self, tx: psycopg.Connection[Any], xid: str, before: StateRow, after: StateRow
    ) -> bool:
        """Move the row, unless it is no longer as it was read.

        Nor in another transaction than the one that took the lock.
        """
        moved = self.tables.execute(
            tx,
            _MOVE,
            (
                str(after.position.lsn),
                str(after.position.seq_id),
                after.next_offset,
                after.topic_id,
                after.source,
                *self._key,
                before.id,
                str(before.position.lsn),
                str(before.position.seq_id),
                before.next_offset,
                xid,
            ),
        )
        return moved.rowcount == 1

    def read_chunk(self, tx: psycopg.Connection[Any], chunk: SnapshotChunk) -> int:
        """Return the index of the last row of this chunk that took effect."""
        key = (*self._key, str(chunk.lsn), chunk.number)
        row = self.tables.execute(tx, _READ_CHUNK, key).fetchone()
        return row[0] if row else NEVER

    def move_chunks(
        self,
        tx: psycopg.Connection[Any],
        before: Mapping[SnapshotChunk, int],
        after: Mapping[SnapshotChunk, int],
    ) -> bool:
        """Move each chunk's index, unless one is no longer as it was read."""
        for chunk, index in after.items():
            self.reach = max(self.reach, chunk.lsn)
            number = (*self._key, str(chunk.lsn), chunk.number)
            if before[chunk] == NEVER:
                moved = self.tables.execute(tx, _INSERT_CHUNK, (*number, index))
            else:
                moved = self.tables.execute(
                    tx, _MOVE_CHUNK, (index, *number, before[chunk])
                )
            if moved.rowcount != 1:
                return False
        return True

    def clean(self, tx: psycopg.Connection[Any], position: AppliedPosition) -> None:
        """Forget chunks that are long past, now and then."""
        reach = max(position.lsn, self.reach)
        if reach < self._clean_from:
            return
        asked = (*self._key, bygone(reach), _CLEANED_AT_ONCE)
        if self.tables.execute(tx, _CLEAN, asked).rowcount < _CLEANED_AT_ONCE:
            self._clean_from = reach + _CLEANED_EVERY

    def forget_chunks(self, tx: psycopg.Connection[Any]) -> None:
        self.reach = 0
        self.tables.execute(tx, _FORGET_CHUNKS, self._key)

    def end_frozen_holders(
        self, connection: psycopg.Connection[Any], s: float
    ) -> dict[int, bool]:
        """End the sessions that hold the lock and did nothing for so many seconds.

        A member of the group that was frozen, or lost its network, would keep it. Its
        transaction takes no effect then; a live one begins it again. Gives the
        processes of all that hold it, and whether each was ended.
        """
        holders = self.tables.execute(
            connection, _HOLDERS, (s, self._lock, self._lock)
        ).fetchall()
        for pid, frozen in holders:
            if frozen:
                terminate = "SELECT pg_catalog.pg_terminate_backend(%s)"
                self.tables.execute(connection, terminate, (pid,))
        return dict(holders)


def _drawn() -> uuid.UUID:
    return uuid.UUID(hex=runtime.token_hex(16), version=4)
