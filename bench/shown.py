"""What was found, as tables on a terminal."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.goals import Figures, ratio, verdicts
from bench.programs import DEBEZIUM, LIMIT
from bench.results import Document

_WIDTH: Final = 110
_BESIDE: Final = (LIMIT, "COPY", "bare loop", "spark.read.jdbc, warm", DEBEZIUM)
console = Console(width=_WIDTH)


def show(document: Document) -> None:
    """Print one profile's figures, and its goals."""
    figures = document["figures"]
    if not figures:
        return
    first = next(run for runs in figures.values() for run in runs)
    made = rates if "rows_per_s" in first else plain
    console.print(made(document["profile"], figures))
    for name, runs in figures.items():
        for run in runs:
            if run.get("void"):
                console.print(f"{name}: a run is void: {run['void']}")
    for name, why in document.get("missing", {}).items():
        console.print(f"{name}: not measured: {why}")
    for verdict in verdicts(document["profile"], figures):
        console.print(str(verdict))


def goals(documents: Sequence[Document]) -> None:
    """Print every goal of several profiles."""
    table = Table("profile", "goal", title="goals")
    for heading in ("found", "wanted", ""):
        table.add_column(heading, no_wrap=True, justify="right")
    for document in documents:
        for one in verdicts(document["profile"], document["figures"]):
            table.add_row(
                one.profile,
                one.what,
                f"{one.found:.2f} {one.unit}",
                f"{'>=' if one.at_least else '<='} {one.goal:g} {one.unit}",
                "[green]met[/]" if one.met else "[red]not met[/]",
            )
    console.print(table)
    if any(document["small"] for document in documents):
        console.print("Small runs: figures of a glance, dominated by starts.")


def rates(profile: str, figures: Figures) -> Table:
    """Lay out medians, and the ratios to what else was run."""
    others = [name for name in _BESIDE if name in figures]
    table = _table(
        profile,
        ("rows/s", "min", "max", *(f"x {other}" for other in others)),
        ("CPU us/row", "RSS MB"),
    )
    for name, runs in figures.items():
        found = [run["rows_per_s"] for run in runs]
        rss = max(run.get("rss_mb", 0.0) for run in runs)
        used = median(run.get("cpu_us_per_row", 0.0) for run in runs)
        table.add_row(
            name,
            *(f"{rate:,.0f}" for rate in (median(found), min(found), max(found))),
            *(f"{ratio(figures, name, other):.2f}" for other in others),
            f"{used:.1f}" if used else "",
            f"{rss:.0f}" if rss else "",
        )
    return table


def plain(profile: str, figures: Figures) -> Table:
    """Lay out what has no rate: each figure's median, and its range."""
    numbers = [
        name
        for name, value in next(iter(figures.values()))[0].items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    table = _table(profile, [number.replace("_", " ") for number in numbers], ())
    for name, runs in figures.items():
        kept = [run for run in runs if not run.get("void")]
        if not kept:
            table.add_row(name, "void")
            continue
        table.add_row(name, *(_range(kept, number) for number in numbers))
    return table


def _range(runs: Sequence[Mapping[str, Any]], number: str) -> str:
    found = [run[number] for run in runs]
    middle, least, most = (_number(of(found)) for of in (median, min, max))
    return middle if least == most else f"{middle}\n{least}-{most}"


def _number(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _table(profile: str, *headings: Sequence[str]) -> Table:
    table = Table(title=profile)
    table.add_column("what")
    for heading in (one for part in headings for one in part):
        width = max(map(len, heading.split()))
        table.add_column(heading, justify="right", no_wrap=True, min_width=width)
    return table
