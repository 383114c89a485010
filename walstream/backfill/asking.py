"""What an operator asks to be backfilled, told apart by what PostgreSQL has."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from walstream.backfill import obstacles
from walstream.backfill.record import DOCUMENT, Record
from walstream.config import Config, PostgresSource
from walstream.errors import ConfigError, Repair
from walstream.positions import LmdbPositions
from walstream.postgres import publication
from walstream.postgres.connection import Connection, session
from walstream.routing import matches
from walstream.spark.table import Wanted, look, published, relations


@dataclass(frozen=True, slots=True)
class Asked:
    """Tables by name, `schema.table`."""

    captured: tuple[str, ...]
    others: tuple[str, ...]  # views and foreign tables: no stream has their changes


def source_of(config: Config, name: str) -> tuple[str, PostgresSource]:
    """Find the source that is meant; "": the only one."""
    if name:
        return name, config.postgres_source(name)
    sources = config.postgres_sources
    if len(sources) != 1:
        known = ", ".join(sources) or "none"
        raise ConfigError(
            "which source is meant?", hint=f"--source NAME, one of: {known}"
        )
    return next(iter(sources.items()))


def find(config: Config, source: PostgresSource, wanted: Sequence[str]) -> Asked:
    """Find the tables that these names or patterns mean; raise where one is not read.

    Before anything is kept: a wish that cannot come true would hold up every start.
    """
    for _, obstacle in obstacles.on_this_machine(config):
        raise obstacle
    names = [source.publication, publication.insert_only(source.publication)]
    with session(source.dsn) as connection:
        captured = published(connection, names)
        found = dict.fromkeys(
            table for name in wanted for table in _meant(name, captured)
        )
        missing = [name for name in wanted if not _meant(name, captured)]
        asked = Asked(tuple(found), tuple(_others(connection, source, missing)))
        for table in (*asked.captured, *asked.others):
            schema, _, bare = table.partition(".")
            look(connection, Wanted(schema, bare))
        return asked


def _meant(name: str, tables: Iterable[str]) -> list[str]:
    pattern = name if "." in name else f"public.{name}"
    return [table for table in tables if matches(pattern, table)]


def _others(
    connection: Connection, source: PostgresSource, names: Sequence[str]
) -> list[str]:
    """Find what has rows, but is in no publication; refuse what should be in one."""
    kinds = relations(connection) if names else {}
    found = []
    for name in names:
        meant = _meant(name, kinds)
        if not meant:
            raise ConfigError(
                f"there is no table {name!r}", hint="write schema.table, or a pattern"
            )
        for table in meant:
            if kinds[table] in "rp":
                raise ConfigError(
                    f"table {table!r} is not in publication {source.publication!r}:"
                    " its changes would be missing",
                    hint="add it to `tables`, or to the publication",
                    repair=Repair(then="walstream run"),
                )
            found.append(table)
    return found


def note(folder: Path, asked: Asked, *, anew: bool) -> None:
    """Keep what is asked, for the next start; nobody may use the folder meanwhile."""
    with LmdbPositions(folder) as positions:
        if positions.position() is None:
            raise ConfigError(
                f"source {folder.name!r} has no position: it does not stream",
                hint='walstream run sends the rows first; after backfill = "only",'
                " walstream positions reset lets it send them once more",
            )
        record = Record.of(positions.read(DOCUMENT)) or Record(0, ())
        record = record.wanting(asked.captured, anew=anew, others=asked.others)
        positions.write({DOCUMENT: record.document})
