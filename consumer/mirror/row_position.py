"""Position of a row: the op that wrote it last, where partitions have no order.

All ops of a row lie in one partition, in order, as long as the record's key is the
row's key, each key has one spelling, and keys stay in their partitions. With another
`partition_key`, with `split_key_updates = false`, where equal keys print otherwise, or
where the topic got more partitions, they lie in several; then each row's position is
kept beside it, and an older op takes no effect.

A position is (generation, lsn, seq_id): see `generation`.
"""

import json
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any, Final

import psycopg
from psycopg.rows import tuple_row

from consumer.mirror.position_store import GENERAL, Store
from consumer.mirror.source_generation import LOCK
from consumer.op import FIRST_LAYOUT, EnvelopeOp, Op, RegisteredOp, layout_of
from consumer.pg_catalog import IS
from walstream.op import Kind

Connection = psycopg.Connection[Any]
Key = Mapping[str, str | None]

_THERE: Final = """
SELECT WHERE pg_catalog.to_regclass('replication_mirror_row') IS NOT NULL
   AND pg_catalog.to_regclass('replication_mirror_source') IS NOT NULL
"""
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS replication_mirror_row (
  relation pg_catalog.text NOT NULL, key pg_catalog.text NOT NULL,
  generation bigint NOT NULL,
  lsn numeric(20) NOT NULL, seq_id numeric(20) NOT NULL, PRIMARY KEY (relation, key));
CREATE TABLE IF NOT EXISTS replication_mirror_source (
  topic pg_catalog.text NOT NULL, partition integer NOT NULL,
  source pg_catalog.text NOT NULL, generation bigint NOT NULL,
  PRIMARY KEY (topic, partition, source))
"""
# a row without a key: positions are kept for all ops of the table
_MARK: Final = """
INSERT INTO replication_mirror_row VALUES (%s, '', 0, 0, 0) ON CONFLICT DO NOTHING
"""
_MARKED: Final = f"""
SELECT relation FROM replication_mirror_row
 WHERE relation {IS} ANY(%s::pg_catalog.text[]) AND key {IS} ''
"""  # noqa: S608 - constants
_LOCK_MARKS: Final = """
SELECT CASE WHEN alone THEN pg_catalog.pg_advisory_xact_lock(ours, number)
            ELSE pg_catalog.pg_advisory_xact_lock_shared(ours, number) END
  FROM (SELECT pg_catalog.hashtext(relation), alone,
               pg_catalog.hashtext('replication_mirror')
          FROM ROWS FROM (pg_catalog.unnest(%s::pg_catalog.text[]),
                          pg_catalog.unnest(%s::boolean[])) AS wanted (relation, alone)
         ORDER BY 1, 2 DESC) AS wanted (number, alone, ours)
"""
# a marker's key is no JSON
_FORGET: Final = f"""
DELETE FROM replication_mirror_row
 WHERE relation {IS} %s AND pg_catalog.starts_with(key, '[')
"""  # noqa: S608 - constants


def prepare(connection: Connection) -> None:
    """Create the tables where they are missing; the connection is in autocommit."""
    if connection.execute(_THERE).rowcount > 0:
        return
    with connection.transaction():
        connection.execute(LOCK)
        connection.execute(_TABLES)


def marks(connection: Connection, relations: Mapping[str, bool]) -> set[str]:
    """Return which of these tables' ops all keep positions, and leave it so.

    Locked until the transaction ends: nobody marks one meanwhile or, where True, looks.
    """
    names = sorted(relations)
    alone = [relations[name] for name in names]
    with connection.cursor(row_factory=tuple_row) as cursor:
        cursor.execute(_LOCK_MARKS, (names, alone), prepare=True)
        # a statement of its own sees what was committed before the locks were had
        found = cursor.execute(_MARKED, (names,), prepare=True).fetchall()
    return {name for (name,) in found}


def mark(connection: Connection, relation: str) -> bool:
    """Make all ops of this table keep positions, those of other instances too.

    Waits for who writes it without. False where it was marked.
    """
    if relation in marks(connection, {relation: True}):
        return False
    connection.execute(_MARK, (relation,))
    return True


def key_texts(store: Store, relation: str, key: Key) -> tuple[str | None, ...]:
    """Return the values of the store's columns for a row's key."""
    values = tuple(key.values())
    return (relation, json.dumps(values)) if store is GENERAL else values


def number_of(op: Op) -> int:
    """Return what orders the ops of a row that share an LSN.

    For Debezium those are the Delete and the Insert of a changed key, where both keys
    are one: they may come in different partitions.
    """
    if op.exact:
        return op.seq_id
    return int(op.kind is Kind.INSERT)


def note(connection: Connection, store: Store, op: Op, key: Key) -> bool:
    """Move the row's position to this op; False where a newer op wrote it.

    Holds the row's position locked until the transaction ends.
    """
    record = op.record
    texts = key_texts(store, op.table.full_name, key)
    place = (op.lsn, record.topic, record.partition)
    values = (*texts, *place, op.lsn, number_of(op))
    done = connection.execute(store.note(), values, prepare=True)
    return done.rowcount > 0


def forget(connection: Connection, store: Store, relation: str) -> None:
    """Forget a truncated table's rows: no older op of any partition will come."""
    connection.execute(_FORGET, (relation,))
    if store is not GENERAL:
        connection.execute(f"DELETE FROM {store.table}")  # noqa: S608 - ours


class Decides(Enum):
    """Answers: does the record's key decide the row, so that one partition holds it."""

    YES = auto()
    MAYBE = auto()  # another column has the same text, and may be the record's key
    NO = auto()


def decides(op: Op, key: Key, *, ask: bool = True) -> Decides:
    """Return what a record's own key says of its row's.

    Without `ask` it is YES where it may be. A table without a row key has the table's
    name as key, and one partition, too.
    """
    raw = op.record.key
    if keys_moved(op):
        return Decides.NO
    if isinstance(op, RegisteredOp):  # without a key, all of a table are in one
        return Decides.YES if op.key_names <= key.keys() else Decides.NO
    if raw is None:
        return Decides.NO
    if isinstance(op, EnvelopeOp):  # its key names its columns
        names = op.key_names
        return Decides.YES if names and names <= key.keys() else Decides.NO
    texts, name = list(key.values()), op.table.full_name
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        found = None
    if found == texts:
        coincides = ask and any(text in texts for text in _others(op, key))
    elif raw == (joined := "".join(text or "" for text in texts)).encode():
        # of a joined key any column may be a part; an empty one is, unseen
        coincides = ask and any((text or "") in joined for text in _others(op, key))
    elif found == [name] or raw == name.encode():
        coincides = ask and (name in texts or name in _others(op, key))
    else:
        return Decides.NO
    return Decides.MAYBE if coincides else Decides.YES


def _others(op: Op, key: Key) -> Iterator[str | None]:
    """Yield the values of the columns that are no part of the row's key."""
    for row in (op.new, op.old):
        for column, text in row.items():
            if column not in key:
                yield text


def keys_moved(op: Op) -> bool:
    """Return that the topic's keys went to other partitions before: see walstream."""
    return layout_of(op) > FIRST_LAYOUT
