"""Which op wrote a row last, where that is not clear from the order of a partition.

All ops of a row lie in one partition, in order, as long as the record's key is the
row's key. With another `partition_key`, or with `split_key_updates = false`, they lie
in several; then each row's position is kept beside it, and an older op takes no effect.

A position is (generation, lsn, seq_id). The generation counts the sources that a topic
had, by the header `walstream-source`: another one's LSNs may start lower.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import psycopg

from consumer.op import Op

Connection = psycopg.Connection[Any]

_THERE: Final = """
SELECT FROM pg_class WHERE oid = to_regclass('replication_mirror_row')
   AND to_regclass('replication_mirror_source') IS NOT NULL
"""
# one at a time: two CREATE TABLE IF NOT EXISTS can meet in the catalog
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('replication_mirror_row'))"
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS replication_mirror_row (
  relation text NOT NULL, key text NOT NULL, generation int8 NOT NULL,
  lsn numeric(20) NOT NULL, seq_id numeric(20) NOT NULL, PRIMARY KEY (relation, key));
CREATE TABLE IF NOT EXISTS replication_mirror_source (
  topic text NOT NULL, partition int4 NOT NULL, source text NOT NULL,
  generation int8 NOT NULL, PRIMARY KEY (topic, partition, source))
"""
_NOTE: Final = """
INSERT INTO replication_mirror_row AS r
SELECT %(relation)s, %(key)s,
       coalesce((SELECT max(generation) FROM replication_mirror_source
                  WHERE topic = %(topic)s AND partition = %(partition)s), 0),
       %(lsn)s, %(seq_id)s
ON CONFLICT (relation, key) DO UPDATE
   SET generation = EXCLUDED.generation, lsn = EXCLUDED.lsn, seq_id = EXCLUDED.seq_id
 WHERE (r.generation, r.lsn, r.seq_id)
       < (EXCLUDED.generation, EXCLUDED.lsn, EXCLUDED.seq_id)
"""
_FORGET: Final = "DELETE FROM replication_mirror_row WHERE relation = %s"
_ANY: Final = "SELECT FROM replication_mirror_row WHERE relation = %s LIMIT 1"
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
        connection.execute(_LOCK)
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


def kept(connection: Connection, relation: str) -> bool:
    """Tell whether positions were kept for rows of this table before."""
    return connection.execute(_ANY, (relation,)).rowcount > 0


def note(connection: Connection, op: Op, key: Mapping[str, str | None]) -> bool:
    """Move the row's position to this op; False where a newer op wrote it.

    Holds the row's position locked until the transaction ends.
    """
    parameters = {
        **_place(op),
        "relation": op.table.full_name,
        "key": json.dumps(list(key.values())),
        "lsn": op.lsn,
        "seq_id": op.seq_id,
    }
    return connection.execute(_NOTE, parameters, prepare=True).rowcount > 0


def forget(connection: Connection, relation: str) -> None:
    """Forget a truncated table's rows: no older op of any partition will come."""
    connection.execute(_FORGET, (relation,))


def same_key(op: Op, key: Mapping[str, str | None]) -> bool:
    """Tell whether the record's key decides the row: then one partition holds it all.

    A table without a row key has the table's name as key, and one partition, too.
    """
    raw = op.record.key
    if raw is None:
        return False
    texts = list(key.values())
    try:
        found = json.loads(raw)
    except ValueError:
        found = None
    return found in (texts, [op.table.full_name]) or raw in (
        "".join(text or "" for text in texts).encode(),
        op.table.full_name.encode(),
    )


def _place(op: Op) -> dict[str, object]:
    return {"topic": op.record.topic, "partition": op.record.partition}
