"""Keys whose text is not their own: values of `regclass` and the like are names."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from walstream.errors import Repair
from walstream.finding import Finding, warning
from walstream.postgres.catalog import TableFacts
from walstream.postgres.checks.context import ServerContext
from walstream.telemetry.human import few, tables

# of a domain or a list of them, too
_COLUMNS: Final = """
WITH RECURSIVE made AS (
  SELECT oid FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace
    AND typname ~ '^reg' AND typcategory = 'N'
  UNION
  SELECT t.oid FROM made JOIN pg_type t
    ON made.oid IN (t.typelem, t.typbasetype) AND t.typcategory IN ('A', 'N')
)
SELECT n.nspname || '.' || c.relname, a.attname, format_type(a.atttypid, a.atttypmod)
FROM made JOIN pg_attribute a ON a.atttypid = made.oid AND a.attnum > 0
JOIN pg_class c ON c.oid = a.attrelid AND c.relkind IN ('r', 'p')
JOIN pg_namespace n ON n.oid = c.relnamespace
  AND n.nspname <> 'information_schema' AND n.nspname !~ '^pg_'
ORDER BY 1, a.attnum
"""

Named = tuple[str, str, str]
"""`schema.table`, a column, and its type."""


def look(seen: ServerContext) -> Iterator[Finding]:
    """Look at the keys of the captured tables."""
    yield from of_names(seen.connection.execute(_COLUMNS).fetchall(), seen.captured)


def of_names(
    columns: Iterable[tuple[str, ...]], captured: Mapping[str, TableFacts]
) -> Iterator[Finding]:
    """Yield of keys that hold what is called otherwise one day."""
    found: dict[str, None] = {}
    names = []
    for name, column, kind in columns:
        table = captured.get(name)
        if table is not None and column in (table.identity or table.primary_key):
            found[name] = None
            names.append(f"{column} of {name} ({kind})")
    if found:
        yield warning(
            "key-type",
            tables(found),
            f"a key holds names of the database's objects: {few(names)}",
            "its text changes when that object is renamed or moved to another schema: "
            "later changes of the row then have another key, in another partition",
            Repair(then="use another column as the key, or the oid"),
        )
