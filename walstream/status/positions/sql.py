"""Looks at one polled source from both sides: the state folder, and the database."""

from collections.abc import Iterator
from pathlib import Path

from walstream.config import Config, SqlSource
from walstream.errors import PermissionLacking
from walstream.finding import Finding, note
from walstream.sources.report import TableReport
from walstream.sources.sql.inspection import DatabaseInspection, TableInspection
from walstream.state.lock import holder
from walstream.status.lookup.sql import kept_of
from walstream.status.positions.model import (
    PolledStanding,
    StartOutcome,
    TableStanding,
    Verdict,
)
from walstream.status.positions.verdict import refusal
from walstream.status.sql import StoredPolls, TableStatus, beyond_table


def standing(config: Config, name: str, source: SqlSource) -> PolledStanding:
    """Look at what is stored, and then, since rows come meanwhile, at the tables."""
    folder = Path(config.state) / name
    kept = kept_of(source, folder)
    from walstream.sources.sql.inspector import visit  # noqa: PLC0415 - SQLAlchemy

    sight = visit(source)
    tables = [
        _table(table, source, kept, sight.tables.get(table, TableInspection()))
        for table in source.tables
    ]
    return PolledStanding(
        source=name,
        verdict=_verdict(config, name, _process(folder), (kept, sight)),
        tables=tables,
        notes=list(_notes(kept, tables)),
    )


def _process(folder: Path) -> str | None:
    try:
        return holder(folder)
    except PermissionLacking:
        return None  # said of the folder itself


def _table(
    name: str, source: SqlSource, kept: StoredPolls, seen: TableInspection
) -> TableStanding:
    return TableStanding(
        name=name,
        start=source.tables[name].start,
        state=TableStatus.of(kept.tables.get(name) or TableReport()),
        oldest_key=seen.oldest,
        newest_key=seen.newest,
    )


def _verdict(
    config: Config,
    name: str,
    process: str | None,
    found: tuple[StoredPolls, DatabaseInspection],
) -> Verdict:
    kept, sight = found
    if obstacle := kept.problem or sight.obstacle:
        return refusal(obstacle, name, config.secrets.scrub)
    if process is not None:
        text = f"process {process} polls it, and would continue from here after a crash"
        return Verdict(StartOutcome.POLLING, text)
    if not kept.tables:
        return Verdict(
            StartOutcome.POLL, "run would poll it, each table from its start"
        )
    return Verdict(StartOutcome.POLL, "run would poll it from these positions")


def _notes(kept: StoredPolls, tables: list[TableStanding]) -> Iterator[Finding]:
    for table in tables:
        if found := beyond_table(table.name, table.state.position, table.newest_key):
            yield found
    for name in kept.others:
        yield note(
            "not-configured",
            f"table {name}",
            "has a position but is not configured",
            "the position stays until the source is reset: if you configure the table "
            "again, it continues from there",
        )
