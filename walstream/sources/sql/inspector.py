"""Asks a database of the tables that are polled, as a poll does first.

SQLAlchemy takes long to load: who needs it seldom imports this module in a function.
"""

from walstream.config import PolledTable, SqlSource
from walstream.errors import WalstreamError
from walstream.sources.sql.database import query
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.low_watermark import Marks
from walstream.sources.sql.database.shape import TableSpec
from walstream.sources.sql.database.table import look
from walstream.sources.sql.inspection import DatabaseInspection, TableInspection


def wish_of(name: str, rules: PolledTable) -> TableSpec:
    """Return what is configured of a table."""
    return TableSpec(name, rules.primary_key, tuple(rules.fields))


def visit(source: SqlSource) -> DatabaseInspection:
    """Look at every table, whatever is wrong with another; raise no database error."""
    database = Database(source.url)
    tables: dict[str, TableInspection] = {}
    try:
        with database.session():
            pass
        for name, rules in source.tables.items():
            tables[name] = _see(database, wish_of(name, rules))
    except WalstreamError as error:
        return DatabaseInspection(tables, error)
    return DatabaseInspection(tables)


def _see(database: Database, wish: TableSpec) -> TableInspection:
    try:
        with database.session() as connection:
            shape = look(connection, wish)
            marks = Marks(shape)
            marks.look(connection)
            return TableInspection(
                query.oldest(connection, shape),
                query.newest(connection, shape),
                marks.lacking,
                shape=shape,
            )
    except WalstreamError as error:
        if error.retryable:  # of the database: the next table would wait for it, too
            raise
        return TableInspection(problem=error)
