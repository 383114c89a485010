"""What would keep a backfill from its work, asked before anything is created."""

from collections.abc import Iterator, Mapping

from walstream.chunk_task import wanted
from walstream.config import Config
from walstream.errors import ConfigError, WalstreamError
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.spark import session
from walstream.spark.table import look_at_each

Obstacle = tuple[str, WalstreamError]
"""A finding's code, and the error that `run` would end with."""


def on_this_machine(config: Config) -> Iterator[Obstacle]:
    """Give what lacks for Spark to start."""
    settings = session.Settings(config.spark.master, config.spark.conf)
    for code, check in (
        ("pyspark", session.check_pyspark),
        ("java", session.check_java),
        ("spark", lambda: session.check(settings)),
    ):
        try:
            check()
        except ConfigError as error:
            yield code, error


def in_tables(
    connection: Connection, captured: Mapping[str, TableFacts]
) -> Iterator[Obstacle]:
    """Give what keeps this role from reading all rows of some table."""
    wishes = (
        wanted(table, ())
        for table in captured.values()
        if table.root not in captured  # else it is read as its root
    )
    for _, found in look_at_each(connection, wishes):
        if isinstance(found, WalstreamError):
            yield "backfill-right", found
