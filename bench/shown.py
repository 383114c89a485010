"""What was found, as tables on a terminal."""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from bench.goals import Figures, ratio, system_us, verdicts
from bench.programs import BATCHES, DEBEZIUM, LIMIT
from bench.results import Document

_WIDTH: Final = 120
_BESIDE: Final = (
    LIMIT,
    BATCHES,
    "COPY",
    "bare loop",
    "spark.read.jdbc, warm",
    DEBEZIUM,
)
console = Console(width=_WIDTH)


def show(document: Document) -> None:
    """Print one profile's figures, and its goals."""
    figures = document["figures"]
    if not figures:
        return
    for kind in kinds(figures):
        first = next(iter(kind.values()))[0]
        made = rates if "rows_per_s" in first else plain
        console.print(made(document["profile"], kind))
        if first.get("sender_us_per_row"):
            console.print(costs(document["profile"], kind))
    for name, runs in figures.items():
        for run in runs:
            if run.get("void"):
                console.print(f"{name}: a run is void: {run['void']}")
    for name, why in document.get("missing", {}).items():
        console.print(f"{name}: not measured: {why}")
    for verdict in verdicts(document["profile"], figures):
        console.print(str(verdict))


def kinds(figures: Figures) -> list[dict[str, Sequence[Mapping[str, Any]]]]:
    """Part figures that say different things: a profile may have several kinds."""
    found: dict[tuple[str, ...], dict[str, Sequence[Mapping[str, Any]]]] = {}
    for name, runs in figures.items():
        found.setdefault(tuple(runs[0]), {})[name] = runs
    return list(found.values())


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
    headings = ["rows/s", "min", "max", *(f"x {other}" for other in others)]
    rows = []
    for name, runs in figures.items():
        found = [run["rows_per_s"] for run in runs]
        rss = max(run.get("rss_mb", 0.0) for run in runs)
        used = median(run.get("cpu_us_per_row", 0.0) for run in runs)
        cells = [f"{rate:,.0f}" for rate in (median(found), min(found), max(found))]
        cells += [f"{ratio(figures, name, other):.2f}" for other in others]
        cells += [f"{used:.1f}" if used else "", f"{rss:.0f}" if rss else ""]
        rows.append([name, *cells])
    return _table(profile, [*headings, "CPU us/row", "RSS MB"], rows)


def costs(profile: str, figures: Figures) -> Table:
    """Lay out what a row costs the whole machine: the servers' CPU, too."""
    headings = ["walsender", "program", "broker", "all three"]
    rows = []
    for name, runs in figures.items():
        found = [
            median(run[f"{one}_us_per_row"] for run in runs)
            for one in ("sender", "cpu", "broker")
        ]
        found.append(median(map(system_us, runs)))
        rows.append([name, *(f"{one:.1f}" if one else "" for one in found)])
    return _table(f"{profile}: CPU, us a row", headings, rows)


def plain(profile: str, figures: Figures) -> Table:
    """Lay out what has no rate: each figure's median, and its range below."""
    numbers = [
        name
        for name, value in next(iter(figures.values()))[0].items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    ]
    rows = []
    for name, runs in figures.items():
        kept = [run for run in runs if not run.get("void")]
        found = [_range(kept, number) for number in numbers] if kept else ["void"]
        rows.append([name, *found])
    return _table(profile, [number.replace("_", " ") for number in numbers], rows)


def _range(runs: Sequence[Mapping[str, Any]], number: str) -> str:
    found = [run[number] for run in runs]
    middle, least, most = (_number(of(found)) for of in (median, min, max))
    return middle if least == most else f"{middle}\n{least}-{most}"


def _number(value: float) -> str:
    return f"{value:,.1f}" if value < 100 else f"{value:,.0f}"


def _table(
    profile: str, headings: Sequence[str], rows: Sequence[Sequence[str]]
) -> Table:
    """Let headings and names wrap where it is narrow, and never cut a figure."""
    table = Table(title=profile)
    table.add_column(
        "what", min_width=max(len(one) for row in rows for one in row[0].split())
    )
    for at, heading in enumerate(headings, 1):
        parts = heading.split()
        parts += [line for row in rows if at < len(row) for line in row[at].split("\n")]
        width = max(map(len, parts))
        table.add_column(heading, justify="right", min_width=width)
    for row in rows:
        table.add_row(*row)
    return table
