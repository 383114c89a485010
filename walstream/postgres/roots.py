"""Which replica identity partition roots have now; the stream may not say so yet."""

from collections.abc import Collection
from typing import Final

from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.root_keys import RootKey

# as the identity in catalog.py, without the leaves: it is asked at every watch
_IDENTITIES: Final = """
SELECT c.oid::bigint, n.nspname || '.' || c.relname, c.relreplident = 'f',
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
    """Give the key of a root that was looked at."""
    return RootKey(frozenset(() if root.full else root.identity), root.full)


def look(
    connection: Connection, oids: Collection[int]
) -> dict[int, tuple[str, RootKey]]:
    """Find those that are still there, with their names."""
    if not oids:
        return {}
    rows = connection.execute(_IDENTITIES, (list(oids),)).fetchall()
    return {
        oid: (name, RootKey(frozenset(() if full else columns), full))
        for oid, name, full, columns in rows
    }
