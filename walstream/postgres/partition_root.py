"""Current replica identity and name of roots; the stream may not have them yet."""

from collections.abc import Collection
from typing import Final

from walstream.pipeline.root_key import RootKey
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection

# as the identity in catalog.py, without the leaves: it is asked at every watch
_IDENTITIES: Final = """
SELECT c.oid::bigint, n.nspname::text, c.relname::text, c.relreplident = 'f',
  ARRAY(SELECT a.attname::text FROM pg_index i, pg_attribute a
    WHERE i.indrelid = c.oid AND i.indisvalid AND i.indimmediate
      AND (c.relreplident = 'd' AND i.indisprimary
        OR c.relreplident = 'i' AND i.indisreplident)
      AND a.attrelid = c.oid
      AND a.attnum = ANY ((i.indkey::int2[])[0:i.indnkeyatts - 1]))
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.oid::bigint = ANY (%s)
"""


def key_of(root: TableFacts) -> RootKey:
    """Return the key of a root that was looked at."""
    columns = frozenset(() if root.full else root.identity)
    return RootKey(columns, root.full, root.schema, root.name)


def look(connection: Connection, oids: Collection[int]) -> dict[int, RootKey]:
    """Find those that are still there."""
    if not oids:
        return {}
    rows = connection.execute(_IDENTITIES, (list(oids),)).fetchall()
    return {
        oid: RootKey(frozenset(() if full else columns), full, schema, table)
        for oid, schema, table, full, columns in rows
    }
