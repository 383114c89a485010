"""What would keep a backfill from its work, asked before anything is created."""

from collections.abc import Iterator, Mapping
from typing import Final

from walstream.chunk_task import wanted
from walstream.config import Config
from walstream.errors import ConfigError, Repair, WalstreamError
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.spark import session
from walstream.spark.table import look_at_each

_INSTALLED: Final = frozenset({"pyspark", "java"})
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
            yield code, _or_without(error) if code in _INSTALLED else error


def _or_without(error: ConfigError) -> ConfigError:
    """Say that a stream alone needs nothing of it."""
    hint = f'{error.hint}; or write backfill = "never", which needs none: then the'
    hint += " rows that are there already are not sent"
    return ConfigError(str(error.args[0]), hint=hint, repair=Repair(then=hint))


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
