"""Asking for tables' old rows beside a stream: of the running instance, or the next.

What is asked for is kept with the source's position, and survives every restart.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from walstream.admin.table_choice import Ground, asking, choose
from walstream.config import Config
from walstream.errors import ConfigError
from walstream.postgres.catalog import TableFacts
from walstream.sources.postgres.incremental.progress import IncrementalProgress
from walstream.state import control
from walstream.state.control_message import BackfillRequest
from walstream.state.store import LmdbStore

_WAIT_S: Final = 10.0
_AROUND: Final = 512  # bytes of a request beside the tables' names


@dataclass(frozen=True, slots=True)
class RequestedBackfill:
    """A request for a backfill."""

    tables: list[str]  # `schema.table`
    running: bool  # an instance reads them now; else the next run does
    left_out: dict[str, str] = field(default_factory=dict)  # why, by table


def backfill(
    config: Config, name: str, patterns: Sequence[str], *, replace: bool = False
) -> RequestedBackfill:
    """Request that whole tables are read beside a source's stream.

    `patterns` are names, or patterns of captured tables. A table that is named and
    cannot be read is refused; one that a pattern finds is left out. With `replace`
    readers hear a Truncate first.
    """
    source = config.postgres_source(name)
    with asking(source) as connection:
        choice = choose(Ground.of(connection, source), patterns, BesideStream())
    folder = Path(config.state)
    running = False
    for part in _parts(choice.tables):
        request = BackfillRequest(name, tuple(part), replace)
        running = control.ask(folder, request, _WAIT_S) is not None
        if not running:
            _note(folder / name, name, part, replace=replace)
    return RequestedBackfill(choice.tables, running, choice.left_out)


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


def _parts(names: Iterable[str]) -> Iterator[list[str]]:
    """Cut the names so that each part fits in a request."""
    part: list[str] = []
    size = 0
    for name in names:
        longer = len(json.dumps(name)) + 2
        if part and size + longer > control.LONGEST - _AROUND:
            yield part
            part, size = [], 0
        part.append(name)
        size += longer
    if part:
        yield part


def _note(folder: Path, name: str, tables: list[str], *, replace: bool) -> None:
    """Keep it for the next run, which reads them beside its stream."""
    with LmdbStore.open_read_only(folder) as positions:
        known = positions is not None and positions.position() is not None
    if not known:
        raise ConfigError(
            f"source {name!r} has no position yet: its first run sends all rows",
            hint="walstream run",
        )
    with LmdbStore(folder) as positions:
        IncrementalProgress(positions).ask(tables, replace=replace)
