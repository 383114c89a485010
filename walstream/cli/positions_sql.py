"""Layout of polled tables for people."""

from collections.abc import Iterator
from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from walstream.cli.output import duration, rate, table
from walstream.status.model import SourceStatus
from walstream.status.positions.model import PolledStanding
from walstream.status.sql import TableStatus
from walstream.telemetry.terminal import escape


def status_table(sources: list[SourceStatus], at: datetime) -> RenderableType:
    """Put each polled table on a line."""
    numbers = ("position", "rows", "rows/s", "missing")
    made = table("polled table", "of", *numbers, "last row", right=numbers)
    for column in made.columns:
        column.no_wrap = True
    made.columns[0].overflow = "fold"
    made.columns[0].no_wrap = False
    for source in sources:
        for name, found in source.tables.items():
            red = bool(found.error or found.held)
            made.add_row(
                Text(escape(name), "bold red" if red else ""),
                source.name,
                "-" if found.position is None else str(found.position),  # to be copied
                f"{found.rows:,}",
                rate(found.rows_per_s),
                f"{found.missing_keys:,}" if found.missing_keys else "-",
                _ago(found.last_row_at, at),
            )
    return made


def remarks(name: str, found: TableStatus, at: datetime) -> Iterator[Text]:
    """Yield what is missing, and for how long that is looked for."""
    if found.oldest_gap_at is not None:
        keys = f"{found.missing_keys:,} key{'s' * (found.missing_keys > 1)} missing"
        gaps = f"in {found.gaps:,} gap{'s' * (found.gaps > 1)}"
        since = duration((at - found.oldest_gap_at).total_seconds())
        yield Text(f"· {name}: {keys}, {gaps}; looked for since {since}", "dim")
        if found.low_water_mark is not None:
            age = duration((at - found.low_water_mark).total_seconds())
            yield Text(f"    all transactions of {age} ago have ended", "dim")
        elif found.lacks_mark:
            # a GRANT is there to be copied
            text = f"    without a low-water mark: {found.lacks_mark}"
            yield Text(text, "dim", no_wrap="GRANT" in text)
    if found.given_up:
        keys = f"{found.given_up:,} key{'s' * (found.given_up > 1)}"
        yield Text(f"· {name}: {keys} never came, no longer looked for", "dim")


def standing_table(standing: PolledStanding) -> RenderableType:
    """Put what is stored of each table beside the existing keys."""
    numbers = ("position", "rows sent", "missing", "first key", "last key")
    made = table("table", *numbers, right=numbers)
    for column in made.columns:
        column.overflow = "fold"  # no digit may be missing
    for one in standing.tables:
        state = one.state
        made.add_row(
            escape(one.name),
            f"({one.start})" if state.position is None else str(state.position),
            f"{state.rows:,}",
            f"{state.missing_keys:,}" if state.missing_keys else "-",
            *(
                "-" if key is None else str(key)
                for key in (one.oldest_key, one.newest_key)
            ),
        )
    return made


def _ago(then: datetime | None, at: datetime) -> str:
    if then is None:
        return "-"
    return f"{duration(max(0.0, (at - then).total_seconds()))} ago"
