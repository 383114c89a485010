"""Asking for tables' old rows beside a stream: of the running instance, or the next.

What is asked for is kept with the source's position, and survives every restart.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from walstream import control
from walstream.beside.progress import Progress
from walstream.config import Config, PostgresSource
from walstream.errors import RESET, ConfigError
from walstream.positions import LmdbPositions
from walstream.postgres import catalog, publication
from walstream.postgres.catalog import TableFacts
from walstream.postgres.connection import session
from walstream.routing import matches

_WAIT_S: Final = 10.0
_AROUND: Final = 512  # bytes of a request beside the tables' names
_WILD: Final = frozenset("*?")


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked for."""

    tables: list[str]  # `schema.table`
    running: bool  # an instance reads them now; else the next run does
    left_out: dict[str, str] = field(default_factory=dict)  # why, by table


def backfill(
    config: Config, name: str, patterns: Sequence[str], *, replace: bool = False
) -> Asked:
    """Have tables read whole beside the stream of a source.

    `patterns` are names, or patterns of captured tables. A table that is named and
    cannot be read is refused; one that a pattern finds is left out. With `replace`
    readers hear a Truncate first.
    """
    source = config.postgres_source(name)
    tables, left_out = _choose(source, patterns)
    folder = Path(config.state)
    running = False
    for part in _parts(tables):
        request = {"do": "backfill", "source": name, "tables": part, "replace": replace}
        running = control.ask(folder, request, _WAIT_S) is not None
        if not running:
            _note(folder / name, name, part, replace=replace)
    return Asked(tables, running, left_out)


def _choose(
    source: PostgresSource, patterns: Iterable[str]
) -> tuple[list[str], dict[str, str]]:
    """Find the tables that are meant; raise for a name that cannot be."""
    with session(source.dsn) as connection:
        facts = catalog.tables(connection)
        names = (source.publication, publication.insert_only(source.publication))
        found = publication.find(connection, names)
    captured = {
        name: table
        for name, table in facts.items()
        if any(made.holds(table) for made in found.values())
        and not _goes_as_leaves(table, found)
    }
    chosen: dict[str, None] = {}
    left_out: dict[str, str] = {}
    for pattern in patterns:
        if _WILD.isdisjoint(pattern):
            named = pattern if "." in pattern else f"public.{pattern}"
            table = _captured(named, captured, facts)
            if not _has_key(table):
                raise _no_key(named)
            chosen[named] = None
            continue
        matching = [name for name in captured if matches(pattern, name)]
        if not matching:
            raise ConfigError(
                f"no captured table matches {pattern!r}", hint=_those(captured)
            )
        for name in matching:
            if _has_key(captured[name]):
                chosen[name] = None
            else:
                left_out[name] = "it has no row key"
    return list(chosen), left_out


def _goes_as_leaves(
    table: TableFacts, found: Mapping[str, publication.Publication]
) -> bool:
    """Tell whether it is a root whose rows are streamed as its partitions' own."""
    return table.kind == "p" and not any(made.via_root for made in found.values())


def _captured(
    name: str, captured: Mapping[str, TableFacts], facts: Mapping[str, TableFacts]
) -> TableFacts:
    if (table := captured.get(name)) is not None:
        return table
    if (table := facts.get(name)) is None:
        close = get_close_matches(name, captured, n=1)
        hint = f"is {close[0]!r} meant?" if close else _those(captured)
        raise ConfigError(f"there is no table {name!r}", hint=hint)
    if table.root in captured:
        raise ConfigError(
            f"table {name!r} is streamed as {table.root!r}, whose partition it is",
            hint=f"backfill {table.root!r}",
        )
    raise ConfigError(f"table {name!r} is not captured", hint=_those(captured))


def _those(captured: Iterable[str]) -> str:
    return f"captured are: {', '.join(sorted(captured)) or 'none'}"


def _has_key(table: TableFacts) -> bool:
    return bool(table.primary_key if table.full else table.identity)


def _no_key(name: str) -> ConfigError:
    return ConfigError(
        f"table {name!r} has no row key: its old rows cannot come in beside the stream",
        hint="give it a primary key, or a replica identity by an index; or let a new"
        " start bring the rows of all tables",
        repair=RESET,
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
    with LmdbPositions.beside(folder) as positions:
        known = positions is not None and positions.position() is not None
    if not known:
        raise ConfigError(
            f"source {name!r} has no position yet: its first run brings all rows",
            hint="walstream run",
        )
    with LmdbPositions(folder) as positions:
        Progress(positions).ask(tables, replace=replace)
