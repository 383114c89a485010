"""Tables that are to be read beside a stream, whoever asks: how they are found."""

from collections.abc import Sequence

from walstream.config import Config, PostgresSource
from walstream.config.sink import RoutedSink
from walstream.errors import ConfigError
from walstream.postgres.catalog import TableFacts
from walstream.sources.postgres.backfill import condition
from walstream.sources.postgres.table_choice import (
    Ground,
    TableChoice,
    asking,
    check_condition,
    choose,
)


def find(
    source: PostgresSource, patterns: Sequence[str], where: str = ""
) -> TableChoice:
    """Find what names and patterns of captured tables mean.

    Raises ConfigError for a name that cannot be read, and for a condition that does
    not fit a table; what a pattern finds and cannot be read is left out.
    """
    with asking(source) as connection:
        ground = Ground.of(connection, source)
        choice = choose(ground, patterns, BesideStream())
        check_condition(connection, ground, choice, where)
        return choice


def part_of(where: str, *, replace: bool) -> str:
    """Return a condition that goes with the request; raise ConfigError for others."""
    if where and replace:
        raise ConfigError(
            "--replace empties a table at its readers, and --where sends a part of it",
            hint="leave one of them out",
        )
    return condition.check_text(where)


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


class BesideStream:
    """A stream that runs reads tables by their row key."""

    def table(self, table: TableFacts, *, named: bool) -> str:
        """Leave out what has no key; refuse it where it is named."""
        if table.primary_key if table.full else table.identity:
            return ""
        if named:
            raise ConfigError(
                f"table {table.full_name!r} has no row key: its existing rows cannot "
                "be sent while the source streams",
                hint="give it a primary key, or a replica identity by an index; or "
                "stop walstream first: then this command reads it too",
            )
        return "it has no row key"

    def other(self, name: str) -> None:
        raise ConfigError(
            f"{name!r} has no running stream to add its rows to",
            hint="stop walstream first: then this command reads it too",
        )
