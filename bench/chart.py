"""`python -m bench.chart`: docs/speed.svg, drawn from the newest results."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final
from xml.sax.saxutils import escape

from bench.programs import BATCHES, COMPILED, LIMIT, PURE
from bench.results import FOLDER, SMALL, Document, newest

_TARGET: Final = Path(__file__).parents[1] / "docs" / "speed.svg"
_WIDTH, _LEFT, _BAR, _GAP, _HEAD = 760, 210, 16, 22, 34
_LONGEST: Final = 400  # pixels of the longest bar of a panel
_COLOURS: Final = {
    LIMIT: "limit",
    BATCHES: "limit",
    "COPY": "limit",
    "walstream": "ours",
    COMPILED: "ours",
    PURE: "pure",
}
# a page's background is not known: no shape has one, and texts follow the reader's mode
_STYLE: Final = """
text{font:13px system-ui,sans-serif;fill:#1f2328}
.title{font-weight:600;font-size:15px}.note{font-size:12px;fill:#59636e}
.limit{fill:#8c959f}.ours{fill:#1f883d}.pure{fill:#4ac26b}.peer{fill:#d4832a}
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.note{fill:#9198a1}
.limit{fill:#6e7681}.ours{fill:#2ea043}.pure{fill:#56d364}.peer{fill:#db8b33}}
"""
_TITLES: Final = {
    "A": "Draining 100-row transactions, rows/s",
    "B": "Draining one-row transactions, rows/s",
    "wide": "Draining rows of 1.6 kB, rows/s",
    "update-full": "Draining updates with REPLICA IDENTITY FULL, rows/s",
    "mixed": "Draining inserts, updates and deletes, changes/s",
    "tables": "Draining rows of 1,000 tables, rows/s",
    "huge": "Draining one huge transaction, rows/s",
    "backfill": "Backfill of a table, rows/s",
}
_LATENCIES: Final = "Commit to consumer, 99th percentile, ms (shorter is better)"
_CPU: Final = "CPU of 100-row transactions, µs a row (shorter is better)"


@dataclass
class Panel:
    """Bars of one scale."""

    title: str
    bars: Sequence[tuple[str, float]]
    form: str = "{:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.chart")
    parser.add_argument("--small", action="store_true", help="draw small runs")
    parser.add_argument("--to", type=Path, default=_TARGET)
    wanted = parser.parse_args()
    documents = newest(SMALL if wanted.small else FOLDER)
    wanted.to.write_text(draw(documents), "utf-8")
    print(f"drawn: {wanted.to}")


def draw(documents: Mapping[str, Document]) -> str:
    """Give the whole SVG."""
    panels = [panel for panel in _panels(documents) if panel.bars]
    lines, top = [], 10
    for panel in panels:
        top += _HEAD
        lines.append(_text(10, top - 10, panel.title, "title"))
        longest = max(value for _, value in panel.bars) or 1.0
        for name, value in panel.bars:
            width = max(value / longest * _LONGEST, 1.0)
            kind = _COLOURS.get(name.partition(", 1")[0], "peer")
            lines += [
                _text(_LEFT - 8, top + 13, name.partition(", 1,")[0], "", "end"),
                _rectangle(kind, top, width),
                _text(_LEFT + width + 6, top + 13, panel.form.format(value)),
            ]
            top += _GAP
    top += 26
    lines.append(_text(10, top - 6, _origin(list(documents.values())), "note"))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top + 4}"'
        f' width="{_WIDTH}" role="img" aria-label="walstream beside its peers">'
        f"<style>{_STYLE}</style>\n" + "\n".join(lines) + "\n</svg>\n"
    )


def _panels(documents: Mapping[str, Document]) -> Iterable[Panel]:
    for profile, title in _TITLES.items():
        if profile in documents:
            figures = documents[profile]["figures"]
            yield Panel(title, _bars(figures, "rows_per_s"))
    if "A" in documents:
        figures = documents["A"]["figures"]
        found = _bars(figures, "cpu_us_per_row")
        bars = [bar for bar in found if bar[0] not in {LIMIT, BATCHES}]
        yield Panel(_CPU, bars, "{:.1f}")
    if "latency" in documents:
        figures = documents["latency"]["figures"]
        steady = {name: runs for name, runs in figures.items() if " 1,000 " in name}
        yield Panel(f"{_LATENCIES}, 1,000 tx/s", _bars(steady, "p99_ms"), "{:,.1f}")


def _bars(
    figures: Mapping[str, Sequence[Mapping[str, Any]]], what: str
) -> list[tuple[str, float]]:
    return [
        (name, median(run[what] for run in counted))
        for name, runs in figures.items()
        if (counted := [run for run in runs if not run.get("void")])
    ]


def _origin(documents: Sequence[Document]) -> str:
    """Say where and when; a reader's machine is another."""
    if not documents:
        return "No results yet: make bench"
    last = max(documents, key=lambda document: str(document["at"]))
    machine = last["machine"]
    return (
        f"Medians; {machine['cores']} cores for servers and programs together,"
        f" {machine['cpu']}; {last['at'][:10]}, {last['revision']}"
    )


def _rectangle(kind: str, top: int, width: float) -> str:
    size = f'width="{width:.1f}" height="{_BAR}" rx="2"'
    return f'<rect class="{kind}" x="{_LEFT}" y="{top}" {size}/>'


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "") -> str:
    attributes = f' class="{kind}"' if kind else ""
    attributes += f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:.0f}" y="{y:.0f}"{attributes}>{escape(words)}</text>'


if __name__ == "__main__":
    main()
