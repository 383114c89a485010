"""Prerequisites of a backfill, checked before anything is created."""

from collections.abc import Iterator, Mapping

from walstream.errors import WalstreamError
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.sources.postgres.backfill.table import look_at_each
from walstream.sources.postgres.backfill.task_factory import wanted
from walstream.spark.prerequisites import Obstacle


def in_tables(
    connection: Connection, captured: Mapping[str, TableFacts]
) -> Iterator[Obstacle]:
    """Yield what keeps this role from reading all rows of some table."""
    wishes = (
        wanted(table, ())
        for table in captured.values()
        if table.root not in captured  # else it is read as its root
    )
    for _, found in look_at_each(connection, wishes):
        if isinstance(found, WalstreamError):
            yield "backfill-right", found
