"""Generation of an op's source: a number that grows with each change of the source.

The header `walstream-source` names a source; another one's LSNs may start lower. One
that returns is another generation of it: what it sends is newer than what came between.
A partition to which nobody else wrote meanwhile does not see it return, and tells by
the LSN from which it did elsewhere.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import psycopg
from psycopg.rows import tuple_row

from consumer.decoder import source_of
from consumer.op import Op
from consumer.pg_catalog import ABOVE, BELOW, IS, JOINED, MINUS, PLUS, UP_TO

Connection = psycopg.Connection[Any]

# one at a time: two CREATE TABLE IF NOT EXISTS can meet in the catalog
LOCK: Final = (
    "SELECT pg_catalog.pg_advisory_xact_lock("
    "pg_catalog.hashtext('replication_mirror_row'))"
)

# A source's row of a later generation is named with that number behind it, since the
# table's key, an earlier version's, has one for each source.
_ERA: Final = f"""
SELECT s.generation, r.generation AS later, r.lsn AS since
  FROM (SELECT * FROM replication_mirror_source
         WHERE topic {IS} %s AND partition {IS} %s
         ORDER BY generation DESC LIMIT 1) AS s
  LEFT JOIN replication_mirror_row AS r
    ON r.relation {IS} s.topic
   AND r.key {IS} ('since ' {JOINED} pg_catalog.regexp_replace(
         s.source, ' [0-9]+$', ''))
"""  # noqa: S608 - constants
# parameters: LSN, topic, partition
GENERATION: Final = (
    "SELECT coalesce("  # noqa: S608 - constants
    f"pg_catalog.max(greatest(generation, CASE WHEN since {UP_TO} %s THEN later END)),"
    " 0)"
    f" FROM ({_ERA}) AS era"
)
_CURRENT: Final = f"""
SELECT source, generation FROM replication_mirror_source
 WHERE topic {IS} %(topic)s AND partition {IS} %(partition)s
 ORDER BY generation DESC LIMIT 1
"""  # noqa: S608 - constants
# the partitions of a topic meet the same source one after the other
_KNOWN: Final = f"""
SELECT coalesce(
         pg_catalog.min(generation) FILTER (WHERE generation {ABOVE} %(after)s AND (
           source {IS} %(source)s OR source {IS}
             (%(source)s {JOINED} ' ' {JOINED} generation::pg_catalog.text))),
         pg_catalog.max(generation) {PLUS} 1, 1),
       pg_catalog.count(*) FILTER (
         WHERE source {IS} %(source)s AND generation {UP_TO} %(after)s) {ABOVE} 0
  FROM replication_mirror_source WHERE topic {IS} %(topic)s
"""  # noqa: S608 - constants
_KEEP: Final = """
INSERT INTO replication_mirror_source
VALUES (%(topic)s, %(partition)s, %(name)s, %(generation)s) ON CONFLICT DO NOTHING
"""
_SINCE: Final = f"""
INSERT INTO replication_mirror_row AS r
VALUES (%(topic)s, 'since ' {JOINED} %(source)s, %(generation)s, %(lsn)s, 0)
ON CONFLICT (relation, key) DO UPDATE
   SET generation = EXCLUDED.generation, lsn = EXCLUDED.lsn
 WHERE r.generation {BELOW} EXCLUDED.generation
    OR (r.generation {IS} EXCLUDED.generation AND r.lsn {ABOVE} EXCLUDED.lsn)
"""  # noqa: S608 - constants
# only one partition's handler runs for a Truncate; the others met the same source
_HERE: Final = f"topic {IS} %(topic)s AND partition {IS} %(partition)s"
_SHARE: Final = f"""
INSERT INTO replication_mirror_source
SELECT topic, n, source, generation FROM replication_mirror_source,
       pg_catalog.generate_series(0, %(partitions)s {MINUS} 1) AS n
 WHERE {_HERE} AND generation {IS}
       (SELECT pg_catalog.max(generation) FROM replication_mirror_source WHERE {_HERE})
ON CONFLICT DO NOTHING
"""  # noqa: S608 - constants


def note_source(connection: Connection, op: Op) -> bool:
    """Keep the source that this record names for its partition, if it names one.

    A Truncate stands for all partitions it went to: their records of it are passed
    over, with the source that these may be the first to name.
    """
    place = {"topic": op.record.topic, "partition": op.record.partition}
    named = source_of(op.record)
    if named is not None:
        _note(connection, op, {**place, "source": named})
    if op.partitions:
        connection.execute(_SHARE, {**place, "partitions": op.partitions})
    return named is not None or op.partitions > 0


def _note(connection: Connection, op: Op, named: Mapping[str, object]) -> None:
    with connection.cursor(row_factory=tuple_row) as cursor:
        source, after = cursor.execute(_CURRENT, named).fetchone() or ("", 0)
        if source in {named["source"], f"{named['source']} {after}"}:
            return
        cursor.execute(LOCK)
        found = cursor.execute(_KNOWN, {**named, "after": after}).fetchone()
    generation, returns = found or (1, False)
    name = f"{named['source']} {generation}" if returns else named["source"]
    kept = {**named, "name": name, "generation": generation, "lsn": op.lsn}
    connection.execute(_KEEP, kept)
    if returns:
        connection.execute(_SINCE, kept)


class Era(NamedTuple):
    """The era of a partition: it gives the generation of the next ops."""

    generation: int = 0  # none was ever named
    later: int | None = None  # the same source's, where it returned elsewhere
    since: int | None = None  # an LSN

    def of(self, op: Op) -> int:
        if self.later is None or self.since is None or op.lsn < self.since:
            return self.generation
        return max(self.generation, self.later)


def era(connection: Connection, op: Op) -> Era:
    """Look up what an op's partition is at."""
    place = (op.record.topic, op.record.partition)
    with connection.cursor(row_factory=tuple_row) as cursor:
        found = cursor.execute(_ERA, place, prepare=True).fetchone()
    return Era(*found) if found else Era()
