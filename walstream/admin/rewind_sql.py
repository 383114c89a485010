"""Sending a polled table's rows again: its position goes back, to any key below it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from walstream.config import Config, SqlSource
from walstream.errors import ConfigError
from walstream.sources.sql.progress import TableProgress, progress_of
from walstream.state.control import lent
from walstream.state.store import LmdbStore


@dataclass(frozen=True, slots=True)
class TableRewind:
    """Range to send again."""

    source: str
    table: str  # as configured
    key: int  # the position
    to: int
    waits: bool = False  # for an operator, who says so that its keys go on


def rewind(
    config: Config,
    name: str,
    table: str,
    to: int,
    consent: Callable[[TableRewind], bool],
) -> str:
    """Set a table's position back; give what was done, in a sentence.

    `table` may be "" where there is only one. `consent` is asked before anything is
    stopped. A running instance lends the source, and polls on from there.
    """
    source = config.sql_source(name)
    table = _choose(name, source, table)
    folder = Path(config.state) / name
    with LmdbStore.open_read_only(folder) as positions:
        if positions is None:
            raise _nothing(name, table)
        planned = _plan(name, progress_of(source, table, positions), table, to)
    subject = f"table {table!r} of source {name!r} is at {to}"
    if planned.key == to and not planned.waits:
        return f"{subject} already: nothing was changed"
    if not consent(planned):
        return "nothing was changed"
    with lent(config, name) as running, LmdbStore(folder) as positions:
        progress = progress_of(source, table, positions)
        _plan(name, progress, table, to)
        progress.rewind(to)
    if running:
        return f"{subject}, and polled again from there"
    return f"{subject}: the next run polls from there"


def _choose(name: str, source: SqlSource, table: str) -> str:
    """Find the table that is meant."""
    tables = source.tables
    known = ", ".join(tables)
    if not table and len(tables) > 1:
        raise ConfigError(
            f"source {name!r} has {len(tables)} tables: name one",
            hint=f"add --table, one of: {known}",
        )
    if table and table not in tables:
        raise ConfigError(
            f"source {name!r} has no table {table!r}", hint=f"configured are: {known}"
        )
    return table or next(iter(tables))


def _plan(name: str, progress: TableProgress, table: str, to: int) -> TableRewind:
    """Compare with what is stored."""
    if progress.key is None:
        raise _nothing(name, table)
    if to > progress.key:
        raise ConfigError(
            f"{to} lies beyond the position {progress.key} of table {table!r}: rows in"
            " between would be skipped",
            hint=f"any key below {progress.key} is possible; to skip rows, reset the "
            'source with start = "after:KEY"',
        )
    return TableRewind(name, table, progress.key, to, bool(progress.trouble.error))


def _nothing(name: str, table: str) -> ConfigError:
    return ConfigError(
        f"table {table!r} of source {name!r} has no position yet: there is nothing to"
        " send again",
        hint="walstream run, or walstream poll, begins with it",
    )
