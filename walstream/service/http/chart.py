"""A small chart of the last minutes, as SVG without a script: pure."""

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final

from walstream.service.http.board import EVERY_S, SAMPLES

_WIDTH: Final = 300.0
_HEIGHT: Final = 60.0
_TOP: Final = 5.0
_SPAN_S: Final = EVERY_S * SAMPLES

Points = Sequence[tuple[float, float | None]]
"""Unix seconds, and a value; None: it was not known."""


def render(
    title: str, unit: str, points: Points, show: Callable[[float | None], str]
) -> str:
    """Draw one value; the newest is at the right."""
    known = [value for _, value in points if value is not None]
    last = points[-1][1] if points else None
    peak = max(known, default=0.0)
    now = f"now {show(last)}{unit if last is not None else ''}"
    most = f"most {show(peak)}{unit}" if known else "nothing yet"
    minutes = f"last {_SPAN_S / 60:.0f} min"
    label = f"{title}, {minutes}: {now}, {most}"
    drawn = "".join(_lines(points, peak))
    return (
        f"<figcaption><span>{escape(title)}, {minutes}</span>"
        f"<span>{escape(most)}</span></figcaption>"
        f'<svg class="chart" role="img" aria-label="{escape(label)}"'
        f' viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" preserveAspectRatio="none">'
        f"{drawn}</svg>"
    )


def _lines(points: Points, peak: float) -> Iterator[str]:
    """Draw each stretch of which all is known, with what is below it."""
    if not points:
        return
    end = points[-1][0]
    stretch: list[tuple[float, float]] = []
    for at, value in [*points, (end, None)]:
        if value is not None:
            x = _WIDTH * (1 - (end - at) / _SPAN_S)
            y = _HEIGHT - 1 - (_HEIGHT - 1 - _TOP) * (value / peak if peak else 0.0)
            stretch.append((max(x, 0.0), y))
        elif stretch:
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in stretch)
            left, right = stretch[0][0], stretch[-1][0]
            floor = f"{right:.1f},{_HEIGHT:.0f} {left:.1f},{_HEIGHT:.0f}"
            yield f'<polygon points="{path} {floor}"/><polyline points="{path}"/>'
            stretch = []
