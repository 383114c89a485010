"""What polls leave in the state folder, written without one: no Spark, no Kafka.

keep(polled.state, "t", key=12, missing=[(4, 6)])
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from walstream.sources.sql.intervals import Interval
from walstream.sources.sql.progress import GapBounds, TableProgress, Trouble
from walstream.state.store import LmdbStore

_BOUNDS: Final = GapBounds(1e9, 1_000_000)


def keep(
    folder: Path,
    table: str,
    *,
    key: int | None,
    missing: Sequence[Interval] = (),
    noted_at: float | None = None,
    **more: Any,
) -> None:
    """Store a table's progress; `more` are its other attributes."""
    with LmdbStore(folder) as positions:
        progress = TableProgress(positions, table, _BOUNDS)
        progress.key = key
        if "error" in more:
            progress.trouble = Trouble(more.pop("error"))
        for name, value in more.items():
            setattr(progress, name, value)
        progress.gaps.note(missing, noted_at or time.time(), None)
        progress.store()


def kept(folder: Path, table: str) -> TableProgress | None:
    """Read it again; None: there is no document."""
    with LmdbStore.open_read_only(folder) as positions:
        if positions is None or f"poll/{table}" not in positions.names("poll/"):
            return None
        return TableProgress(positions, table, _BOUNDS)
