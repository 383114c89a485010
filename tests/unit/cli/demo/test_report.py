"""The result: figures first, and what is missing by name."""

import io
from collections import Counter

from rich.console import Console

from walstream.cli.demo.crash import DeliveryGap
from walstream.cli.demo.report import Result, show
from walstream.cli.demo.screen import Screen
from walstream.cli.demo.tally import DemoChange, DemoTally, DemoVerdict


def shown(missing: Counter[DemoChange], latencies: list[tuple[int, float]]) -> str:
    tally = DemoTally()
    tally.latencies = latencies
    verdict = DemoVerdict(
        written=4,
        delivered=4 - missing.total(),
        missing=missing,
        unwritten=Counter(),
        repeated=3,
        tables=5,
        rows=2,
        unequal=[],
    )
    out = io.StringIO()
    screen = Screen(Console(file=out, highlight=False))
    show(screen, Result(verdict, 2, tally, DeliveryGap(1000, 2000)))
    return out.getvalue()


def figures(text: str) -> dict[str, str]:
    lines = [line.split("  ") for line in text.splitlines()]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    return {line[0]: line[1] for line in cells if len(line) > 1}


def test_nothing_missing_is_said() -> None:
    text = shown(Counter(), [])
    assert figures(text)["Missing"] == "0"
    assert figures(text)["Repeated"] == "3"
    assert "Nothing is missing." in text


def test_missing_change_is_named() -> None:
    lost = Counter({DemoChange("shop.orders", "Delete", ("7", None)): 1})
    text = shown(lost, [])
    assert figures(text)["Missing"] == "1"
    assert "1x Delete of shop.orders ['7', None]" in text
    assert "Nothing is missing." not in text


def test_latency_around_the_kill_stands_apart() -> None:
    text = shown(Counter(), [(100, 5.0), (200, 7.0), (1500, 600.0)])
    assert figures(text)["Latency p50 / p99"] == "5 ms / 7 ms"
    assert figures(text)["… around the kill"] == "600 ms / 600 ms"
