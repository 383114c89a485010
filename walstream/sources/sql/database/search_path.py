"""Search path: the schemas in which PostgreSQL finds unqualified names.

A session finds all names in pg_catalog alone: another user's schema may hold a function
or an operator that fits better, and that would run with the session's rights. Where a
bare name of the configuration is looked up, the search_path of role and database
counts, as it does in every other session of that role; it is asked for before the
session's own is set, by names that nobody can hide.
"""

import json
from typing import Final

from sqlalchemy import Connection, text

OWN: Final = "schemas"
"""Where a connection's `info` has the schemas of its role's path, as JSON."""

ASKED: Final = (
    "SELECT CAST(pg_catalog.array_to_json(pg_catalog.current_schemas(true))"
    " AS pg_catalog.text)"
)
"""What asks for them."""

_CATALOG: Final = "pg_catalog"
_SCHEMA_OF: Final = text("""
SELECT n.nspname
FROM json_array_elements_text(:own) WITH ORDINALITY AS own (name, place)
JOIN pg_namespace n ON n.nspname = own.name
JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = :name
ORDER BY place LIMIT 1
""")


def schemas(connection: Connection) -> list[str]:
    """Name the schemas in which the role's own names are; none: the engine knows."""
    found: list[str] = json.loads(connection.info.get(OWN, "[]"))
    return [name for name in found if name != _CATALOG]


def schema_of(connection: Connection, name: str) -> str:
    """Find the schema of a bare name; "": there is none, or the engine knows it."""
    own = connection.info.get(OWN)
    if own is None:
        return ""
    with connection.begin():
        found = connection.execute(_SCHEMA_OF, {"own": own, "name": name}).scalar()
    return str(found or "")
