"""Asks a database of the tables that are polled, as a poll does first.

SQLAlchemy takes long to load: who needs it seldom imports this module in a function.
"""

from walstream.config import PolledTable, SqlSource
from walstream.errors import WalstreamError
from walstream.sources.sql.database import query
from walstream.sources.sql.database.engine import Database
from walstream.sources.sql.database.low_watermark import Marks
from walstream.sources.sql.database.shape import Wish
from walstream.sources.sql.database.table import look
from walstream.sources.sql.inspection import Sight, TableSight


def wish_of(name: str, rules: PolledTable) -> Wish:
    """Say what is configured of a table."""
    return Wish(name, rules.primary_key, tuple(rules.fields))


def visit(source: SqlSource) -> Sight:
    """Look at every table, whatever is wrong with another; raise no database error."""
    database = Database(source.url)
    tables: dict[str, TableSight] = {}
    try:
        with database.session():
            pass
        for name, rules in source.tables.items():
            tables[name] = _see(database, wish_of(name, rules))
    except WalstreamError as error:
        return Sight(tables, error)
    return Sight(tables)


def _see(database: Database, wish: Wish) -> TableSight:
    try:
        with database.session() as connection:
            shape = look(connection, wish)
            marks = Marks(shape)
            marks.look(connection)
            return TableSight(
                query.oldest(connection, shape),
                query.newest(connection, shape),
                marks.lacking,
            )
    except WalstreamError as error:
        if error.retryable:  # of the database: the next table would wait for it, too
            raise
        return TableSight(problem=error)
