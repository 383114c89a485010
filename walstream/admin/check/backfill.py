"""Findings of `check` about a backfill: the errors that `run` would end with."""

from collections.abc import Collection, Iterator, Mapping

from walstream.config import Config, PostgresSource
from walstream.errors import WalstreamError
from walstream.finding import Finding
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import session
from walstream.sources.postgres.backfill import prerequisites

_WHY = "existing rows are read before the stream begins"


def inspect(
    config: Config,
    source: PostgresSource,
    captured: Mapping[str, TableFacts],
    *,
    begins: bool,
    left: Collection[str],
) -> Iterator[Finding]:
    """Look at what a backfill needs, where one begins or goes on with the next start.

    `left` are the tables, `schema.table`, of one that goes on; `captured` is empty
    where the server cannot be asked.
    """
    if source.backfill == "never" or not captured or not (begins or left):
        return
    try:
        with session(source.dsn) as connection:
            obstacles = (
                prerequisites.of_first(
                    config, connection, captured, source.backfill_where
                )
                if begins
                else prerequisites.of_rest(config, connection, left)
            )
            for code, error in obstacles:
                about = "backfill" if code.startswith("backfill") else "spark"
                yield Finding.of(error, code, about, _WHY)
    except WalstreamError:
        return  # said by who looked at the server
