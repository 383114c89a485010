"""Reads what the state folder says of a polled source."""

from pathlib import Path

from walstream.config import SqlSource
from walstream.errors import WalstreamError
from walstream.sources.report import LAST_ERROR
from walstream.sources.sql.progress import POLLED, progress_of
from walstream.state.store import LmdbStore
from walstream.status.sql import (
    StoredPolls,
)


def kept_of(source: SqlSource, folder: Path) -> StoredPolls:
    """Read a source's folder, beside whoever uses it."""
    try:
        with LmdbStore.open_read_only(folder) as positions:
            if positions is None:
                return StoredPolls()
            positions.check_format()
            names = POLLED.keys(positions)
            return StoredPolls(
                {
                    table: progress_of(source, table, positions).report()
                    for table in source.tables
                    if table in names
                },
                tuple(name for name in names if name not in source.tables),
                LAST_ERROR.read(positions),
            )
    except WalstreamError as error:
        return StoredPolls(problem=error)
