"""What the state folder says of a polled source, whether or not something runs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from walstream.config import SqlSource
from walstream.errors import WalstreamError
from walstream.polling.progress import PREFIX, Progress, bounds_of
from walstream.ports import Positions
from walstream.positions import LmdbPositions


@dataclass(frozen=True, slots=True)
class Kept:
    """Empty before the first poll."""

    tables: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    others: tuple[str, ...] = ()  # tables that are not configured any more
    error: Mapping[str, Any] | None = None  # the last one
    problem: WalstreamError | None = None  # why the folder tells no more


def kept_of(source: SqlSource, folder: Path) -> Kept:
    """Read a source's folder, beside whoever uses it."""
    try:
        with LmdbPositions.beside(folder) as positions:
            if positions is None:
                return Kept()
            positions.check_format()
            names = [name.removeprefix(PREFIX) for name in positions.names(PREFIX)]
            return Kept(
                {
                    table: progress_of(source, table, positions).report()
                    for table in source.tables
                    if table in names
                },
                tuple(name for name in names if name not in source.tables),
                positions.read("error"),
            )
    except WalstreamError as error:
        return Kept(problem=error)


def progress_of(source: SqlSource, table: str, positions: Positions) -> Progress:
    """Read how far a configured table is."""
    return Progress(positions, table, bounds_of(source.tables[table]))
