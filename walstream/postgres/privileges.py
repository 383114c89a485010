"""Privileges of the dsn's role on publications, checked before use."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from walstream.errors import PermissionLacking, Repair
from walstream.postgres import publication, quoting
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.postgres.publication import Publication
from walstream.telemetry.human import few

# as object_ownercheck has it: a superuser, the owner, and who has the owner's rights
_RIGHTS: Final = """
SELECT current_user::text, current_database(),
  has_database_privilege(current_database(), 'CREATE'),
  ARRAY(SELECT n.nspname || '.' || c.relname FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'p') AND n.nspname <> 'information_schema'
      AND n.nspname !~ '^pg_' AND NOT pg_has_role(c.relowner, 'USAGE')),
  ARRAY(SELECT pubname::text FROM pg_publication
    WHERE NOT pg_has_role(pubowner, 'USAGE'))
"""


@dataclass(frozen=True, slots=True)
class Rights:
    role: str
    database: str
    may_create: bool  # publications, in this database
    foreign_tables: frozenset[str]  # `schema.table`: not ours to publish
    foreign_publications: frozenset[str]  # not ours to change


def look(connection: Connection) -> Rights:
    """Ask what the session's role may do."""
    row = connection.execute(_RIGHTS).fetchone()
    assert row is not None  # noqa: S101 - a SELECT without FROM
    return Rights(row[0], row[1], row[2], frozenset(row[3]), frozenset(row[4]))


def missing_to_create(
    rights: Rights, statements: Collection[str], tables: Collection[TableFacts]
) -> PermissionLacking | None:
    """Return what keeps these tables from being published by these statements."""
    names = {table.full_name for table in tables}
    if foreign := rights.foreign_tables & names:
        return PermissionLacking(
            f"role {rights.role!r} may not publish {few(foreign)}: it is not the owner",
            hint="a superuser creates the publications; walstream then uses them",
            repair=Repair(sql="\n".join(statements)),
        )
    if not rights.may_create:
        database, role = quoting.name(rights.database), quoting.name(rights.role)
        return PermissionLacking(
            f"role {rights.role!r} may not create publications in the database"
            f" {rights.database!r}",
            hint="the database's owner or a superuser can grant it",
            repair=Repair(sql=f"GRANT CREATE ON DATABASE {database} TO {role};"),
        )
    return None


def missing_to_extend(
    rights: Rights, into: Publication, tables: Collection[TableFacts]
) -> PermissionLacking | None:
    """Return what keeps tables from being added to a publication."""
    wanted = {table.full_name: table for table in tables if not into.holds(table)}
    if into.name not in rights.foreign_publications:
        wanted = {name: wanted[name] for name in rights.foreign_tables & wanted.keys()}
    if not wanted:
        return None
    return PermissionLacking(
        f"role {rights.role!r} may not add {few(wanted)} to publication {into.name!r}",
        hint="the tables' owner or a superuser has to do it",
        repair=Repair(sql=publication.addition(into.name, wanted.values())),
    )
