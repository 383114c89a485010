"""Spill of a slot: transactions that the server wrote to disk.

A transaction above logical_decoding_work_mem lies in files of the slot until it is sent
or rolled back: as many bytes as it is large, and of several at a time the sum.
"""

from typing import Final

import psycopg

from walstream.postgres.connection import Connection

# The right is asked for first, by itself: a query that names the function is refused
# without it, also where it would never call it.
_MAY: Final = """
SELECT has_function_privilege(to_regprocedure('pg_ls_replslotdir(text)'), 'EXECUTE')
"""
_FILES: Final = """
SELECT coalesce(sum(size), 0)::bigint FROM pg_ls_replslotdir(%s)
WHERE name LIKE '%%.spill'
"""


def visible(connection: Connection) -> bool:
    """Return whether the role may see a slot's files."""
    row = connection.execute(_MAY).fetchone()
    return row is not None and bool(row[0])


def on_disk(connection: Connection, slot: str) -> int | None:
    """Sum up the files (bytes); None: the role may not see them, or they are gone.

    Never fails while the connection stands: it is only a figure, and a slot may be
    dropped, or a right taken away, at any moment.
    """
    try:
        if not visible(connection):
            return None
        row = connection.execute(_FILES, (slot,)).fetchone()
    except psycopg.Error:
        if connection.closed:
            raise
        return None
    return row[0] if row else None
