"""Backfill by Spark on request, while nothing streams."""

from collections.abc import Sequence
from pathlib import Path

from walstream.admin import table_choice
from walstream.admin.table_choice import Ground, TableChoice, choose
from walstream.config import Config, PostgresSource
from walstream.config.sink import RoutedSink
from walstream.errors import ConfigError
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import Connection
from walstream.sources.handlers import outbox_sinks
from walstream.sources.postgres.backfill import prerequisites
from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.backfill.publication_filter import KeyedTable
from walstream.sources.postgres.backfill.stored_progress import StoredProgress
from walstream.sources.postgres.backfill.table import look
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


def check_strict(
    config: Config, name: str, source: PostgresSource, *, beside: bool, replace: bool
) -> None:
    """Raise ConfigError for what the readers of a strict sink cannot take.

    They keep one position, and know no Truncate. Beside a stream rows come in the order
    of theirs; Spark reads chunks side by side.
    """
    for sink in source.sinks:
        found = config.sinks[sink]
        if not (isinstance(found, RoutedSink) and found.strict):
            continue
        if replace:
            raise ConfigError(
                f"--replace sends a Truncate to sinks.{sink}, which is strict",
                hint=(
                    "leave --replace out: readers then get rows that they have a "
                    "second time"
                ),
            )
        if not beside:
            raise ConfigError(
                f"sinks.{sink} is strict, and Spark sends rows in any order",
                hint=f"start walstream run, then run this again while {name!r} streams",
            )


class WithSpark:
    """Spark reads what this role may read, views and foreign tables too."""

    def __init__(self, connection: Connection, config: Config, source: str) -> None:
        self._connection = connection
        self._config = config
        self._source = source

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
        look(self._connection, KeyedTable(table.schema, table.name))
        return ""

    def other(self, name: str) -> None:
        schema, _, bare = name.partition(".")
        look(self._connection, KeyedTable(schema, bare))


def find(config: Config, name: str, wanted: Sequence[str]) -> TableChoice:
    """Find what these names or patterns mean; raise where it cannot be read."""
    source = config.postgres_source(name)
    with table_choice.asking(source) as connection:
        ground = Ground.of(connection, source)
        chosen = choose(ground, wanted, WithSpark(connection, config, name))
        names = (*chosen.tables, *chosen.others)
        for _, obstacle in prerequisites.of_rest(config, connection, names):
            raise obstacle
        return chosen


def note(folder: Path, asked: TableChoice, *, anew: bool) -> None:
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
        book.store(record.wanting(asked.tables, anew=anew, others=asked.others))
