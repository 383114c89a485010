"""Which op wrote a row last, where that is not clear from the order of a partition.

All ops of a row lie in one partition, in order, as long as the record's key is the
row's key and each key has one spelling. With another `partition_key`, with
`split_key_updates = false`, or where equal keys print otherwise, they lie in several;
then each row's position is kept beside it, and an older op takes no effect.

A position is (generation, lsn, seq_id). The generation counts the sources that a topic
had, by the header `walstream-source`: another one's LSNs may start lower.
"""

import json
from collections.abc import Iterator, Mapping
from enum import Enum, auto
from typing import Any, Final

import psycopg

from consumer.mirror.store import GENERAL, LOCK, Store
from consumer.op import Op

Connection = psycopg.Connection[Any]
Key = Mapping[str, str | None]

_THERE: Final = """
SELECT FROM pg_class WHERE oid = to_regclass('replication_mirror_row')
   AND to_regclass('replication_mirror_source') IS NOT NULL
"""
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS replication_mirror_row (
  relation text NOT NULL, key text NOT NULL, generation int8 NOT NULL,
  lsn numeric(20) NOT NULL, seq_id numeric(20) NOT NULL, PRIMARY KEY (relation, key));
CREATE TABLE IF NOT EXISTS replication_mirror_source (
  topic text NOT NULL, partition int4 NOT NULL, source text NOT NULL,
  generation int8 NOT NULL, PRIMARY KEY (topic, partition, source))
"""
# a row without a key: positions are kept for all ops of the table
_MARK: Final = """
INSERT INTO replication_mirror_row VALUES (%s, '', 0, 0, 0) ON CONFLICT DO NOTHING
"""
_MARKED: Final = "SELECT FROM replication_mirror_row WHERE relation = %s AND key = ''"
_FORGET: Final = "DELETE FROM replication_mirror_row WHERE relation = %s AND key <> ''"
# the partitions of a topic meet the same source one after the other
_SOURCE: Final = """
INSERT INTO replication_mirror_source
SELECT %(topic)s, %(partition)s, %(source)s, coalesce(
         (SELECT min(generation) FROM replication_mirror_source
           WHERE topic = %(topic)s AND source = %(source)s),
         (SELECT max(generation) + 1 FROM replication_mirror_source
           WHERE topic = %(topic)s), 1)
ON CONFLICT DO NOTHING
"""
# only one partition's handler runs for a Truncate; the others met the same source
_SHARE: Final = """
INSERT INTO replication_mirror_source
SELECT topic, n, source, generation
  FROM replication_mirror_source, generate_series(0, %(partitions)s - 1) AS n
 WHERE topic = %(topic)s AND partition = %(partition)s AND generation =
       (SELECT max(generation) FROM replication_mirror_source
         WHERE topic = %(topic)s AND partition = %(partition)s)
ON CONFLICT DO NOTHING
"""
_SOURCE_HEADER: Final = "walstream-source"


def prepare(connection: Connection) -> None:
    """Create the tables where they are missing; the connection is in autocommit."""
    if connection.execute(_THERE).rowcount > 0:
        return
    with connection.transaction():
        connection.execute(LOCK)
        connection.execute(_TABLES)


def note_source(connection: Connection, op: Op) -> None:
    """Keep the source that this record names for its partition, if it names one.

    A Truncate stands for all partitions it went to: their records of it are passed
    over, with the source that these may be the first to name.
    """
    for name, text in op.record.headers:
        if name == _SOURCE_HEADER and text is not None:
            connection.execute(_SOURCE, {**_place(op), "source": text.decode()})
    if op.partitions:
        connection.execute(_SHARE, {**_place(op), "partitions": op.partitions})


def marked(connection: Connection, relation: str) -> bool:
    """Tell whether all ops of this table are to keep positions."""
    return connection.execute(_MARKED, (relation,)).rowcount > 0


def mark(connection: Connection, relation: str) -> None:
    """Have all ops of this table keep positions, those of other instances too."""
    connection.execute(_MARK, (relation,))


def key_texts(store: Store, relation: str, key: Key) -> tuple[str | None, ...]:
    """Give the values of the store's columns for a row's key."""
    values = tuple(key.values())
    return (relation, json.dumps(values)) if store is GENERAL else values


def note(connection: Connection, store: Store, op: Op, key: Key) -> bool:
    """Move the row's position to this op; False where a newer op wrote it.

    Holds the row's position locked until the transaction ends.
    """
    record = op.record
    where = (*key_texts(store, op.table.full_name, key), record.topic, record.partition)
    done = connection.execute(store.note(), (*where, op.lsn, op.seq_id), prepare=True)
    return done.rowcount > 0


def forget(connection: Connection, store: Store, relation: str) -> None:
    """Forget a truncated table's rows: no older op of any partition will come."""
    connection.execute(_FORGET, (relation,))
    if store is not GENERAL:
        connection.execute(f"DELETE FROM {store.table}")  # noqa: S608 - ours


class Decides(Enum):
    """Whether the record's key decides the row: then one partition holds it all."""

    YES = auto()
    MAYBE = auto()  # another column has the same text, and may be the record's key
    NO = auto()


def decides(op: Op, key: Key, *, ask: bool = True) -> Decides:
    """Tell what a record's own key says of its row's.

    Without `ask` it is YES where it may be. A table without a row key has the table's
    name as key, and one partition, too.
    """
    raw = op.record.key
    if raw is None:
        return Decides.NO
    texts, name = list(key.values()), op.table.full_name
    try:
        found = json.loads(raw)
    except ValueError:
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
    """Give the values of the columns that are no part of the row's key."""
    for row in (op.new, op.old):
        for column, text in row.items():
            if column not in key:
                yield text


def _place(op: Op) -> dict[str, object]:
    return {"topic": op.record.topic, "partition": op.record.partition}
