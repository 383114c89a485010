"""Reads what the state folder says of a polled source."""

from pathlib import Path

from walstream.config import SqlSource
from walstream.errors import WalstreamError
from walstream.sources.sql.progress import PREFIX, progress_of
from walstream.state.store import LmdbPositions
from walstream.status.sql import (
    Kept,
)


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
