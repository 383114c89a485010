"""The publications of one source, as its stream captures and watches them."""

from collections.abc import Callable, Sequence
from functools import partial

from walstream.config import Config, PostgresSource
from walstream.pipeline.ports import StateStore
from walstream.postgres.capture import Capture
from walstream.postgres.missing_rows import Mending
from walstream.postgres.selection import selection_of
from walstream.sources.handlers import is_backfilled
from walstream.sources.postgres.backfill import stored_progress
from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.postgres.incremental.progress import (
    IncrementalProgress,
    TableRequests,
)


def capture_of(
    config: Config,
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
        # by what this process goes by: a write that failed may be on disk all the same
        asked=lambda: read_anew(
            stored_progress.read(positions), TableRequests(progress.wishes())
        ),
    )
    return Capture(
        source.dsn,
        source.publication,
        selection_of(source),
        keep=positions.write,
        grown=_grown(config, name, source, progress),
        mending=mending,
    )


def _grown(
    config: Config, name: str, source: PostgresSource, progress: IncrementalProgress
) -> Callable[[Sequence[str]], None]:
    """Return what asks for rows of tables that joined, where some sink takes them."""
    where = source.backfill_where

    def ask(tables: Sequence[str]) -> None:
        # of one that is half read, that may have been another table of the name
        taken = [table for table in tables if is_backfilled(config, name, table)]
        progress.ask((table for table in taken if table not in where), anew=True)
        for table in taken:
            if table in where:
                progress.ask([table], anew=True, where=where[table])

    return ask if source.backfill == "initial" else lambda _: None


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
