"""Asking for tables' old rows beside a stream: of the running instance, or the next.

What is asked for is kept with the source's position, and survives every restart.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from walstream.config import Config
from walstream.errors import ConfigError
from walstream.sources.postgres.incremental.progress import IncrementalProgress
from walstream.sources.postgres.requested_tables import find
from walstream.state import control
from walstream.state.control_message import BackfillRequest, PartRequest
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
    config: Config,
    name: str,
    patterns: Sequence[str],
    *,
    replace: bool = False,
    where: str = "",
) -> RequestedBackfill:
    """Request that tables are read beside a source's stream, or their rows `where`.

    `patterns` are names, or patterns of captured tables. A table that is named and
    cannot be read is refused; one that a pattern finds is left out. With `replace`
    readers hear a Truncate first.
    """
    choice = find(config.postgres_source(name), patterns, where)
    folder = Path(config.state)
    running = False
    for part in _parts(choice.tables, len(json.dumps(where))):
        request: BackfillRequest | PartRequest
        request = BackfillRequest(name, tuple(part), replace)
        if where:
            request = PartRequest(name, tuple(part), where)
        running = control.ask(folder, request, _WAIT_S) is not None
        if not running:
            _note(folder / name, name, part, replace=replace, where=where)
    return RequestedBackfill(choice.tables, running, choice.left_out)


def _parts(names: Iterable[str], beside: int) -> Iterator[list[str]]:
    """Cut the names so that each part fits in a request, beside so many bytes."""
    part: list[str] = []
    size = 0
    for name in names:
        longer = len(json.dumps(name)) + 2
        if part and size + longer > control.LONGEST - _AROUND - beside:
            yield part
            part, size = [], 0
        part.append(name)
        size += longer
    if part:
        yield part


def _note(
    folder: Path, name: str, tables: list[str], *, replace: bool, where: str
) -> None:
    """Keep it for the next run, which reads them beside its stream."""
    with LmdbStore.open_read_only(folder) as positions:
        known = positions is not None and positions.position() is not None
    if not known:
        raise ConfigError(
            f"source {name!r} has no position yet: its first run sends all rows",
            hint="walstream run",
        )
    with LmdbStore(folder) as positions:
        IncrementalProgress(positions).ask(tables, replace=replace, where=where)
