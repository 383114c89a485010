"""Figures of several kinds are laid out apart, and what a row costs is summed up."""

from io import StringIO
from typing import Any

from rich.console import Console

from bench.programs import BATCHES, COMPILED
from bench.shown import costs, kinds


def run(program: float, sender: float, broker: float) -> dict[str, Any]:
    return {
        "rows_per_s": 1.0,
        "cpu_us_per_row": program,
        "sender_us_per_row": sender,
        "broker_us_per_row": broker,
    }


def test_kinds_are_told_by_what_their_runs_say() -> None:
    drained, looped = run(1.0, 1.0, 1.0), {"p99_ms": 1.0}
    figures = {"a": [drained], "b": [looped], "c": [drained, drained]}
    assert kinds(figures) == [
        {"a": [drained], "c": [drained, drained]},
        {"b": [looped]},
    ]


def test_all_three_are_summed_by_runs_where_all_were_measured() -> None:
    figures = {
        COMPILED: [run(4.0, 2.5, 1.0), run(5.0, 2.5, 2.0), run(4.5, 2.0, 9.0)],
        BATCHES: [run(0.1, 2.5, 0.0)],
    }
    console = Console(width=120, record=True, file=StringIO())
    console.print(costs("A", figures))
    ours, batches = (
        line.replace("│", " ").split()
        for line in console.export_text().splitlines()
        if "compiled" in line or "batches" in line
    )
    assert ours[-4:] == ["2.5", "4.5", "2.0", "9.5"]
    assert batches[-2:] == ["2.5", "0.1"]
