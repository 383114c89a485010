"""Backfill by Spark on request, while nothing streams."""

from collections.abc import Sequence
from pathlib import Path

from walstream.config import Config, PostgresSource
from walstream.errors import ConfigError
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.sources.handlers import outbox_sinks
from walstream.sources.postgres import table_choice
from walstream.sources.postgres.backfill import prerequisites
from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.backfill.publication_filter import KeyedTable
from walstream.sources.postgres.backfill.stored_progress import StoredProgress
from walstream.sources.postgres.backfill.table import look
from walstream.sources.postgres.table_choice import (
    Ground,
    TableChoice,
    check_condition,
    choose,
)
from walstream.state.store import LmdbStore


def source_of(config: Config, name: str) -> tuple[str, PostgresSource]:
    """Find the source that is meant; "": the only one."""
    if name in config.sql_sources:
        raise ConfigError(
            f"{name!r} is a sql source: it is polled, not backfilled",
            hint=f"walstream positions rewind {name} --to KEY sends rows again",
        )
    if name:
        return name, config.postgres_source(name)
    sources = config.postgres_sources
    if not sources:
        raise ConfigError(
            "no postgres source is configured, and this command is for those",
            hint="walstream positions rewind SOURCE --to KEY sends rows of a polled "
            "table again",
        )
    if len(sources) != 1:
        known = ", ".join(sources) or "none"
        raise ConfigError(
            "several sources are configured: name one",
            hint=f"--source NAME, one of: {known}",
        )
    return next(iter(sources.items()))


class WithSpark:
    """Spark reads what this role may read, views and foreign tables too."""

    def __init__(
        self, connection: Connection, config: Config, source: str, where: str = ""
    ) -> None:
        self._connection = connection
        self._config = config
        self._source = source
        self._where = where

    def table(self, table: TableFacts, *, named: bool) -> str:
        """Refuse a wish that cannot come true: it would hold up every start.

        Leave out an outbox that a pattern finds; refuse it where it is named.
        """
        sinks = outbox_sinks(self._config, self._source, table.full_name)
        if sinks and named:
            raise ConfigError(
                f"table {table.full_name!r} is an outbox of sinks.{sinks[0]}: only a"
                " stream sends its existing rows",
                hint="start walstream run, then run this again while it streams",
            )
        if sinks:
            return f"it is an outbox of sinks.{sinks[0]}"
        key = table.primary_key if table.full else table.identity
        wish = KeyedTable(table.schema, table.name, key, where=self._where)
        look(self._connection, wish)
        return ""

    def other(self, name: str) -> None:
        schema, _, bare = name.partition(".")
        look(self._connection, KeyedTable(schema, bare, where=self._where))


def find(
    config: Config, name: str, wanted: Sequence[str], where: str = ""
) -> TableChoice:
    """Find what these names or patterns mean; raise where it cannot be read."""
    source = config.postgres_source(name)
    with table_choice.asking(source) as connection:
        ground = Ground.of(connection, source)
        chosen = choose(ground, wanted, WithSpark(connection, config, name, where))
        check_condition(connection, ground, chosen, where)
        names = (*chosen.tables, *chosen.others)
        for _, obstacle in prerequisites.of_rest(config, connection, names):
            raise obstacle
        return chosen


def note(folder: Path, asked: TableChoice, *, anew: bool, where: str = "") -> None:
    """Keep what is asked, for the next start; nobody may use the folder meanwhile."""
    with LmdbStore(folder) as positions:
        if positions.position() is None:
            raise ConfigError(
                f"source {folder.name!r} has no position: it does not stream",
                hint='walstream run sends the rows first; after backfill = "only", '
                "walstream positions reset makes it send them again",
            )
        book = StoredProgress(positions)
        record = book.record or BackfillProgress(0, ())
        wanted = record.wanting(
            asked.tables, anew=anew, others=asked.others, where=where
        )
        book.store(wanted)
