"""Survey of a database's tables and sizes, for `init`."""

from dataclasses import dataclass
from typing import Final

from walstream.postgres import catalog, publication
from walstream.postgres.connection import session
from walstream.postgres.selection import EVERYTHING

# A partitioned table has the rows of its leaves. -1: never analyzed.
_ROWS: Final = """
WITH RECURSIVE tree AS (
  SELECT c.oid AS root, c.oid AS member FROM pg_class c
  WHERE c.relkind = 'p' AND NOT c.relispartition
  UNION ALL
  SELECT tree.root, i.inhrelid FROM tree JOIN pg_inherits i ON i.inhparent = tree.member
), sized AS (
  SELECT oid AS root, reltuples FROM pg_class WHERE relkind = 'r'
  UNION ALL
  SELECT tree.root, leaf.reltuples FROM tree
  JOIN pg_class leaf ON leaf.oid = tree.member AND leaf.relkind = 'r'
)
SELECT n.nspname || '.' || c.relname,
  CASE WHEN bool_or(sized.reltuples < 0) THEN NULL ELSE sum(sized.reltuples)::bigint END
FROM sized JOIN pg_class c ON c.oid = sized.root
JOIN pg_namespace n ON n.oid = c.relnamespace
GROUP BY 1
"""
_INSERTS_ONLY: Final = "no primary key: only inserts are captured"


@dataclass(frozen=True, slots=True)
class FoundTable:
    """One table that a pattern may name; partitions go with their root."""

    schema: str
    name: str
    rows: int | None  # estimated; None: not known yet
    remark: str = ""  # why it is not captured whole

    @property
    def full_name(self) -> str:
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class Survey:
    """Existing tables."""

    tables: list[FoundTable]
    database: str
    slots: frozenset[str]  # of the whole server: slots share one space of names


def survey(dsn: str) -> Survey:
    """Look at every table that is not the system's, and at the slots' names."""
    with session(dsn) as connection:
        facts = catalog.tables(connection)
        rows = dict(connection.execute(_ROWS).fetchall())
        slots = connection.execute("SELECT slot_name FROM pg_replication_slots")
        taken = frozenset(name for (name,) in slots.fetchall())
        database = connection.info.dbname
    plan = publication.plan(EVERYTHING, facts)
    remarks = dict(plan.refused)
    remarks |= {table.full_name: _INSERTS_ONLY for table in plan.insert_only}
    captured = {table.full_name for table in (*plan.identified, *plan.insert_only)}
    tables = [
        FoundTable(table.schema, table.name, rows.get(name), remarks.get(name, ""))
        for name, table in sorted(facts.items())
        if name in captured | plan.refused.keys()
    ]
    return Survey(tables, database, taken)
