"""Asks how one postgres source is: its state folder, and its server."""

from pathlib import Path

from walstream.config import PostgresSource
from walstream.errors import WalstreamError
from walstream.postgres import slot as slots
from walstream.postgres.connection import session
from walstream.postgres.slot_health import (
    SlotHealth,
)
from walstream.sources.figures import STREAM_FIGURES, StreamFigures
from walstream.sources.postgres.backfill import stored_progress
from walstream.sources.postgres.detached.detached_sink import DETACHED
from walstream.sources.postgres.incremental import progress
from walstream.sources.report import LAST_ERROR
from walstream.state.store import LmdbStore
from walstream.status.postgres import StoredStream


def kept_of(folder: Path) -> StoredStream:
    """Read a source's folder, beside whoever uses it."""
    try:
        with LmdbStore.open_read_only(folder) as positions:
            if positions is None:
                return StoredStream()
            position = positions.position()
            return StoredStream(
                position.resume if position else None,
                STREAM_FIGURES.read(positions) or StreamFigures(),
                LAST_ERROR.read(positions),
                stored_progress.read(positions),
                progress.read(positions),
                DETACHED.read_all(positions),
            )
    except WalstreamError as error:
        return StoredStream(problem=error)


def health_of(
    source: PostgresSource,
) -> tuple[SlotHealth | None, WalstreamError | None]:
    """Ask the server how the slot is; or why it cannot be asked."""
    try:
        with session(source.dsn) as connection:
            return slots.health(connection, source.slot), None
    except WalstreamError as error:
        return None, error
