"""The chart is drawn from results alone, and is XML."""

from typing import Any
from xml.etree import ElementTree as ET

from bench.chart import draw
from bench.programs import DEBEZIUM, LIMIT, PURE

_SVG = "{http://www.w3.org/2000/svg}"


def document(figures: dict[str, Any]) -> dict[str, Any]:
    return {
        "at": "2026-01-02T03:04:05+0000",
        "machine": {"cores": 2, "cpu": "A <CPU> & more"},
        "revision": "abc",
        "figures": figures,
    }


def test_bars_are_as_long_as_their_medians() -> None:
    def runs(*rates: float) -> list[dict[str, float]]:
        return [{"rows_per_s": rate, "cpu_us_per_row": 0.0} for rate in rates]

    figures = {LIMIT: runs(400), PURE: runs(90, 100, 390), DEBEZIUM: runs(50)}
    drawn = ET.fromstring(draw({"B": document(figures)}))  # noqa: S314 - our own
    bars = drawn.findall(f"{_SVG}rect")
    assert [bar.get("width") for bar in bars] == ["400.0", "100.0", "50.0"]
    assert [bar.get("class") for bar in bars] == ["limit", "pure", "peer"]


def test_void_runs_are_not_drawn() -> None:
    runs = [{"p99_ms": 9.0, "void": "late"}]
    drawn = draw({"latency": document({f"{PURE}, 1,000 tx/s": runs})})
    assert "<rect" not in drawn


def test_without_results_it_says_so() -> None:
    assert "No results yet" in draw({})
