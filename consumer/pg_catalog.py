"""PostgreSQL's own operators, by names that no search_path leads elsewhere.

The transaction is the application's, and so is its search_path. A schema on it may
belong to another user, who can define an operator or a function there that fits better
than PostgreSQL's own. It runs with the rights of the session's user. So all statements
of consumers name pg_catalog, for functions and types, too. Types without it are defined
by the grammar itself: bigint, numeric, boolean. IN, BETWEEN, LIKE, NULLIF, USING and IS
DISTINCT FROM have operators that cannot be named: only `pinned` statements use them.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg.rows import tuple_row

IS: Final = "OPERATOR(pg_catalog.=)"
IS_NOT: Final = "OPERATOR(pg_catalog.<>)"
BELOW: Final = "OPERATOR(pg_catalog.<)"
UP_TO: Final = "OPERATOR(pg_catalog.<=)"
ABOVE: Final = "OPERATOR(pg_catalog.>)"
FROM: Final = "OPERATOR(pg_catalog.>=)"
PLUS: Final = "OPERATOR(pg_catalog.+)"
MINUS: Final = "OPERATOR(pg_catalog.-)"
JOINED: Final = "OPERATOR(pg_catalog.||)"
"""Binds as other operators do, and looser than + and -; use brackets."""
ELEMENT: Final = "OPERATOR(pg_catalog.->>)"

_PIN: Final = """
SELECT pg_catalog.current_setting('search_path'),
       pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)
"""
_UNPIN: Final = "SELECT pg_catalog.set_config('search_path', %s, true)"


def unnest(*arrays: str) -> str:
    """Return rows of arrays side by side; it uses no unnest of several arrays."""
    return f"ROWS FROM ({', '.join(f'pg_catalog.unnest({one})' for one in arrays)})"


@contextmanager
def pinned(tx: psycopg.Connection[Any]) -> Iterator[None]:
    """Make names mean PostgreSQL's own, within a transaction: for long questions.

    Not for what writes to the application's tables: their triggers may rely on the
    path. Where a statement fails, the rollback brings it back.
    """
    with tx.cursor(row_factory=tuple_row) as cursor:
        own, _ = cursor.execute(_PIN).fetchone() or ("", "")
        yield
        cursor.execute(_UNPIN, (own,))
