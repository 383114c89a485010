"""Which op wrote a row last, where that is not clear from the order of a partition.

All ops of a row lie in one partition, in order, as long as the record's key is the
row's key. With another `partition_key`, or with `split_key_updates = false`, they lie
in several; then each row's position is kept beside it, and an older op takes no effect.

A position is (epoch, lsn, seq_id). The epoch is that of the header `walstream-source`:
it grows when the source's history changed, after which LSNs may start lower.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

import psycopg

from consumer.op import Op

Connection = psycopg.Connection[Any]

# one at a time: two CREATE TABLE IF NOT EXISTS can meet in the catalog
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('replication_mirror_row'))"
_TABLES: Final = """
CREATE TABLE IF NOT EXISTS replication_mirror_row (
  relation text NOT NULL, key text NOT NULL, epoch int8 NOT NULL,
  lsn numeric(20) NOT NULL, seq_id numeric(20) NOT NULL, PRIMARY KEY (relation, key));
CREATE TABLE IF NOT EXISTS replication_mirror_epoch (
  topic text NOT NULL, partition int4 NOT NULL, epoch int8 NOT NULL,
  PRIMARY KEY (topic, partition))
"""
_NOTE: Final = """
INSERT INTO replication_mirror_row AS r
SELECT %s, %s, coalesce((SELECT epoch FROM replication_mirror_epoch
                          WHERE topic = %s AND partition = %s), 0), %s, %s
ON CONFLICT (relation, key) DO UPDATE
   SET epoch = EXCLUDED.epoch, lsn = EXCLUDED.lsn, seq_id = EXCLUDED.seq_id
 WHERE (r.epoch, r.lsn, r.seq_id) < (EXCLUDED.epoch, EXCLUDED.lsn, EXCLUDED.seq_id)
"""
_FORGET: Final = "DELETE FROM replication_mirror_row WHERE relation = %s"
_ANY: Final = (
    "SELECT FROM replication_mirror_row WHERE relation = %s LIMIT 1"  # kept before?
)
_EPOCH: Final = """
INSERT INTO replication_mirror_epoch VALUES (%s, %s, %s)
ON CONFLICT (topic, partition) DO UPDATE SET epoch = EXCLUDED.epoch
"""
_SOURCE_HEADER: Final = "walstream-source"


def prepare(connection: Connection) -> None:
    """Create the tables; the connection is in autocommit."""
    with connection.transaction():
        connection.execute(_LOCK)
        connection.execute(_TABLES)


def note_epoch(connection: Connection, op: Op) -> None:
    """Keep the epoch that this record begins in its partition, if it begins one."""
    for name, text in op.record.headers:
        if name == _SOURCE_HEADER and text is not None:
            epoch = text.decode().rpartition("/")[2]
            place = (op.record.topic, op.record.partition, int(epoch))
            connection.execute(_EPOCH, place)


def kept(connection: Connection, relation: str) -> bool:
    """Tell whether positions were kept for rows of this table before."""
    return connection.execute(_ANY, (relation,)).rowcount > 0


def note(connection: Connection, op: Op, key: Mapping[str, str | None]) -> bool:
    """Move the row's position to this op; False where a newer op wrote it.

    Holds the row's position locked until the transaction ends.
    """
    place = (op.record.topic, op.record.partition)
    name = json.dumps(list(key.values()))
    position = (op.lsn, op.seq_id)
    noted = connection.execute(
        _NOTE, (op.table.full_name, name, *place, *position), prepare=True
    )
    return noted.rowcount > 0


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
