"""Long values that the stream leaves out, and the right to read them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from walstream.finding import Finding, note, warning
from walstream.postgres import quoting, replica_identity
from walstream.postgres.catalog import TableFacts
from walstream.postgres.checks.context import ServerContext, statements
from walstream.telemetry.human import few, tables, which

_TABLES: Final = """
SELECT n.nspname || '.' || c.relname,
  ARRAY(SELECT a.attname::text FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      AND a.attlen = -1 AND a.attstorage <> 'p' AND a.attgenerated = ''
    ORDER BY a.attnum),
  has_schema_privilege(n.oid, 'USAGE'),
  has_table_privilege(c.oid, 'SELECT') OR NOT EXISTS (
    SELECT FROM pg_attribute a
    WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
      AND NOT has_column_privilege(c.oid, a.attnum, 'SELECT')),
  row_security_active(c.oid)
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema'
  AND n.nspname !~ '^pg_'
"""


@dataclass(frozen=True, slots=True)
class Access:
    """One table's long columns, and whether we may read them."""

    long: tuple[str, ...]  # columns whose values may be toasted
    schema: bool  # USAGE
    select: bool
    filtered: bool  # row security hides rows from us


def look(seen: ServerContext) -> Iterator[Finding]:
    """Look at the captured tables whose updates leave values out."""
    access = {
        name: Access(tuple(long), schema, select, filtered)
        for name, long, schema, select, filtered in seen.connection.execute(
            _TABLES
        ).fetchall()
    }
    partial = {
        name: table
        for name, table in seen.captured.items()
        if table.identified
        and not (table.full and table.leaves_full)
        and table.root not in seen.captured
        and set(access[name].long if name in access else ()) - set(table.identity)
    }
    yield from of_absent(partial, seen.facts)
    if seen.source.toast_on_key_change == "read":
        found = {name: access[name] for name in partial}
        yield from of_rights(seen.server.role, partial, found)


def of_absent(
    partial: Mapping[str, TableFacts], facts: Mapping[str, TableFacts]
) -> Iterator[Finding]:
    """Yield of tables whose unchanged long values do not come."""
    if not partial:
        return
    lacking = (
        one
        for table in partial.values()
        for one in (table, *replica_identity.leaves(table, facts))
        if not one.full
    )
    yield note(
        "toast",
        tables(partial),
        f"long values that an update does not change are not sent{which(partial)}",
        'a record lists them as "absent"; REPLICA IDENTITY FULL adds them, and the '
        "whole old row, at the cost of more WAL",
        statements(replica_identity.identify(one, "FULL") for one in lacking),
    )


def of_rights(
    role: str, partial: Mapping[str, TableFacts], access: Mapping[str, Access]
) -> Iterator[Finding]:
    """Name what we could not read when a row's key changes."""
    who = quoting.name(role)
    closed = {
        partial[name].schema: None for name, one in access.items() if not one.schema
    }
    unread = [name for name, one in access.items() if not (one.schema and one.select)]
    if unread:
        usage = [
            f"GRANT USAGE ON SCHEMA {quoting.name(schema)} TO {who};"
            for schema in closed
        ]
        select = [
            f"GRANT SELECT ON {quoting.name(partial[name].schema, partial[name].name)}"
            f" TO {who};"
            for name in unread
            if not access[name].select
        ]
        yield warning(
            "select-right",
            tables(unread),
            f"role {role!r} may not read {few(unread)}",
            "when a key changes, walstream reads the row's unchanged long values from "
            "the table: without the right it stops",
            statements([*usage, *select]),
        )
    if hidden := [name for name, one in access.items() if one.filtered and one.select]:
        yield warning(
            "row-security",
            tables(hidden),
            f"row security hides rows of {few(hidden)} from role {role!r}",
            "when a key changes, the row's unchanged long values could not be read, "
            "and would be missing",
            statements([f"ALTER ROLE {who} BYPASSRLS;"]),
        )
