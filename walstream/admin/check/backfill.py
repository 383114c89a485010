"""Findings of `check` about a backfill: the errors that `run` would end with."""

from collections.abc import Iterator, Mapping

from walstream.config import Config, PostgresSource
from walstream.errors import WalstreamError
from walstream.finding import Finding
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import session
from walstream.sources.postgres.backfill import prerequisites as obstacles
from walstream.spark import prerequisites

_WHY = "Spark reads the existing rows before the stream begins"


def inspect(
    config: Config,
    source: PostgresSource,
    captured: Mapping[str, TableFacts],
    *,
    begins: bool,
    pending: bool,
) -> Iterator[Finding]:
    """Look at what a backfill needs, where one begins or goes on with the next start.

    `captured` is empty where the server cannot be asked.
    """
    if source.backfill == "never" or not (begins or pending):
        return
    for code, error in prerequisites.on_this_machine(config):
        yield Finding.of(error, code, "spark", _WHY)
    if begins and captured:
        try:
            with session(source.dsn) as connection:
                for code, error in obstacles.in_tables(connection, captured):
                    yield Finding.of(error, code, "backfill", _WHY)
        except WalstreamError:
            return  # said by who looked at the server
