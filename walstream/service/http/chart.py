"""A small chart with its axes, as SVG and text without a script: pure."""

import math
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Final, NamedTuple

from walstream.service.http.series import ChartSpan

_WIDTH: Final = 300.0
_HEIGHT: Final = 60.0
_DOT: Final = 2.0
_AXES: Final = {
    ChartSpan.MINUTES: ("5 min ago", "2.5 min", "now"),
    ChartSpan.HOUR: ("1 h ago", "30 min", "now"),
}
_LASTS: Final = {ChartSpan.MINUTES: "last 5 min", ChartSpan.HOUR: "last 1 h"}
_STEPS: Final = (1.0, 2.0, 5.0, 10.0)
_UNITS_S: Final = (86400.0, 3600.0, 60.0)

Points = Sequence[tuple[float, float | None]]
"""Unix seconds, and a value; None: it was not known."""


class Axis(NamedTuple):
    """The texts and the end of a chart's axis of values."""

    show: Callable[[float | None], str]
    round_up: Callable[[float], float]  # to the axis' end
    unit: str = ""


def render(
    title: str, axis: Axis, points: Points, span: ChartSpan = ChartSpan.MINUTES
) -> str:
    """Draw one value; the newest is at the right."""
    show, unit = axis.show, axis.unit
    known = [value for _, value in points if value is not None]
    last = points[-1][1] if points else None
    peak = max(known, default=0.0)
    top = axis.round_up(peak)
    now = f"now {show(last)}{unit if last is not None else ''}"
    most = f"max {show(peak)}{unit}" if known else "no data yet"
    label = f"{title}, {_LASTS[span]}: {now}, {most}"
    drawn = "".join(_lines(points, top, span))
    heights = "".join(
        f"<span>{escape(show(value))}{escape(unit)}</span>" for value in (top, top / 2)
    )
    heights += "<span>0</span>"
    times = "".join(f"<span>{one}</span>" for one in _AXES[span])
    grid = "".join(
        f'<line x1="0" x2="{_WIDTH:.0f}" y1="{y:.1f}" y2="{y:.1f}"/>'
        for y in (0.5, _HEIGHT / 2, _HEIGHT - 0.5)
    )
    return (
        f"<figcaption><span>{escape(title)}, {_LASTS[span]}</span>"
        f"<span>{escape(most)}</span></figcaption>"
        f'<div class="plot"><div class="heights" aria-hidden="true">{heights}</div>'
        f'<svg class="chart" role="img" aria-label="{escape(label)}"'
        f' viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" preserveAspectRatio="none">'
        f"{grid}{drawn}</svg>"
        f'<div class="times" aria-hidden="true">{times}</div></div>'
    )


def round_up(peak: float) -> float:
    """Return the end of an axis for values up to `peak`: 1, 2 or 5 of some power."""
    if peak <= 0.0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(peak))
    return next(step * power for step in _STEPS if step * power >= peak * 0.9999)


def round_up_duration(peak: float) -> float:
    """Return likewise the end of an axis of seconds, minutes, hours or days."""
    unit = next((unit for unit in _UNITS_S if peak >= unit), 1.0)
    return round_up(peak / unit) * unit


def _lines(points: Points, top: float, span: ChartSpan) -> Iterator[str]:
    """Draw each stretch of which all is known, with what is below it."""
    if not points:
        return
    end = points[-1][0]
    stretch: list[tuple[float, float]] = []
    for at, value in [*points, (end, None)]:
        if value is not None:
            x = _WIDTH * (1 - (end - at) / span.seconds)
            y = _HEIGHT - 1 - (_HEIGHT - 2) * (value / top)
            stretch.append((max(x, 0.0), y))
        elif stretch:
            if len(stretch) == 1:  # a line of no length would not be seen
                stretch.insert(0, (max(stretch[0][0] - _DOT, 0.0), stretch[0][1]))
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in stretch)
            left, right = stretch[0][0], stretch[-1][0]
            floor = f"{right:.1f},{_HEIGHT:.0f} {left:.1f},{_HEIGHT:.0f}"
            yield f'<polygon points="{path} {floor}"/><polyline points="{path}"/>'
            stretch = []
