"""Which schemas PostgreSQL looks into for names that have none.

A session prints values, and finds functions and operators, in pg_catalog alone. Where a
bare name of the configuration is looked up, the search_path of role and database
counts, as it does in every other session of that role.
"""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

OWN: Final = "search_path"
"""Where a connection's `info` has the path of its role and database."""

_PINNED: Final = "pg_catalog, pg_temp"
_SET: Final = text("SELECT pg_catalog.set_config('search_path', :path, false)")
_SCHEMA_OF: Final = text("""
SELECT n.nspname FROM pg_catalog.pg_class c
JOIN pg_catalog.pg_namespace n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
WHERE c.relname OPERATOR(pg_catalog.=) CAST(:name AS pg_catalog.name)
  AND pg_catalog.pg_table_is_visible(c.oid)
""")


@contextmanager
def own(connection: Connection) -> Iterator[None]:
    """Look names up as the role does; outside of a transaction."""
    own = connection.info.get(OWN)
    if own is None:
        yield
        return
    _set(connection, own)
    try:
        yield
    finally:
        with suppress(SQLAlchemyError):  # broken, and told of already
            _set(connection, _PINNED)


def _set(connection: Connection, path: str) -> None:
    with connection.begin():
        connection.execute(_SET, {"path": path})


def schema_of(connection: Connection, name: str) -> str:
    """Find the schema of a bare name within `own`; "": the engine knows by itself."""
    if OWN not in connection.info:
        return ""
    with connection.begin():
        return connection.execute(_SCHEMA_OF, {"name": name}).scalar() or ""
