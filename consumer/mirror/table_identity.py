"""Identity of a mirrored table: one that was made again has none of its positions.

What a mirror knows of rows outlives a table that is dropped. Of an empty table of the
same name it would leave out all that a group reads again.
"""

import logging
from typing import Any, Final

import psycopg
from psycopg import sql
from psycopg.rows import tuple_row

from consumer.mirror.row_position import forget
from consumer.mirror.table_shape import TargetTable
from consumer.pg_catalog import IS, IS_NOT

Connection = psycopg.Connection[Any]

# beside the positions, with the table's oid as the LSN; the key is no JSON
_HERE: Final = f"relation {IS} %s AND key {IS} 'table'"
_NOTED: Final = f"SELECT lsn FROM replication_mirror_row WHERE {_HERE}"  # noqa: S608 - constants
_NOTE: Final = """
INSERT INTO replication_mirror_row VALUES (%s, 'table', 0, %s, 0)
ON CONFLICT DO NOTHING
"""
_CHANGE: Final = (
    f"UPDATE replication_mirror_row SET lsn = %s WHERE {_HERE} AND lsn {IS_NOT} %s"  # noqa: S608 - constants
)
_log: Final = logging.getLogger("consumer.mirror")


def note_table(tx: Connection, shape: TargetTable) -> None:
    """Keep which table the positions are of, from the first one on."""
    if shape.oid:
        tx.execute(_NOTE, (shape.full_name, shape.oid))


def see_table(tx: Connection, shape: TargetTable, *, keeps: bool) -> None:
    """Forget the positions of a former table, where this one has no rows.

    With rows it may be a copy of the former, to which the positions belong as well.
    `keeps` says that positions of its rows are kept from now on.
    """
    if not shape.oid:
        return
    with tx.cursor(row_factory=tuple_row) as cursor:
        noted = cursor.execute(_NOTED, (shape.full_name,)).fetchone()
        if noted is None:
            if keeps:
                note_table(tx, shape)
            return
        if noted[0] == shape.oid:
            return
        # of several that see it one does it
        change = (shape.oid, shape.full_name, shape.oid)
        if not cursor.execute(_CHANGE, change).rowcount:
            return
        if cursor.execute(_any_row(shape)).fetchone() is None:
            forget(tx, shape.store, shape.full_name)
            _log.warning(
                "%s is another table than before, and empty: what was known of the"
                " order of its rows is forgotten",
                shape.full_name,
            )


def _any_row(shape: TargetTable) -> sql.Composed:
    table = sql.Identifier(shape.schema, shape.name)
    return sql.SQL("SELECT 1 FROM {} LIMIT 1").format(table)
