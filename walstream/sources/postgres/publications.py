"""The publications of one source, as its stream captures and watches them."""

from collections.abc import Mapping, Sequence
from functools import partial

from walstream.config import PostgresSource
from walstream.pipeline.ports import StateStore
from walstream.postgres.capture import Capture
from walstream.postgres.missing_rows import Mending
from walstream.postgres.selection import selection_of
from walstream.sources.postgres.backfill import stored_progress
from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.incremental import progress as beside_stream
from walstream.sources.postgres.incremental.progress import (
    IncrementalProgress,
    TableRequests,
)


def capture_of(
    name: str,
    source: PostgresSource,
    positions: StateStore,
    progress: IncrementalProgress,
) -> Capture:
    """Make it for a session; what is to be read beside the stream is asked of progress.

    `name` is the source's.
    """
    mending = Mending(
        name,
        reread=source.on_publication_change == "reread",
        ask=partial(progress.ask, replace=True, anew=True),
        asked=lambda: read_anew(
            stored_progress.read(positions), beside_stream.read(positions)
        ),
    )
    return Capture(
        source.dsn,
        source.publication,
        selection_of(source),
        keep=positions.write,
        grown=partial(_ask_first, progress, source.backfill_where)
        if source.backfill == "initial"
        else lambda _: None,
        mending=mending,
    )


def _ask_first(
    progress: IncrementalProgress, where: Mapping[str, str], tables: Sequence[str]
) -> None:
    """Ask for what existing rows are to be sent of tables that came in."""
    progress.ask(name for name in tables if name not in where)
    for name in tables:
        if name in where:
            progress.ask([name], where=where[name])


def read_anew(
    record: BackfillProgress | None, beside: TableRequests | None
) -> set[str]:
    """Name the tables that the next start reads whole, for readers to replace theirs.

    By what is kept: one that is half read beside the stream would go on there.
    """
    wishes = beside.tables if beside else {}
    return {
        *(record.replace if record else ()),
        *(n for n, wish in wishes.items() if wish.replace and not wish.truncated),
    }
