"""A chart needs no script, and says in words what it shows."""

import pytest

from walstream.service.http.chart import Axis, render, round_up, round_up_duration
from walstream.service.http.figures import rate
from walstream.service.http.series import ChartSpan

AXIS = Axis(rate, round_up, "/s")


def test_what_was_not_known_is_a_gap() -> None:
    points = [(0.0, 1.0), (2.0, 2.0), (4.0, None), (6.0, 3.0)]
    html = render("Read", AXIS, points)
    assert html.count("<polyline") == 2
    assert 'aria-label="Read, last 5 min: now 3.0/s, max 3.0/s"' in html


def test_nothing_is_drawn_of_nothing() -> None:
    assert "<polyline" not in render("Read", AXIS, [])
    assert "<polyline" not in render("Read", AXIS, [(0.0, None)])


def test_axes_have_their_values_and_times() -> None:
    html = render("Read", AXIS, [(0.0, 494.0)], ChartSpan.HOUR)
    assert "<span>500/s</span><span>250/s</span><span>0</span>" in html
    assert "<span>1 h ago</span><span>30 min</span><span>now</span>" in html
    assert "max 494/s" in html


@pytest.mark.parametrize(
    ("peak", "top"),
    [(0.0, 1.0), (0.003, 0.005), (1.0, 1.0), (1.1, 2.0), (494.0, 500.0), (501.0, 1e3)],
)
def test_an_axis_ends_at_a_round_value(peak: float, top: float) -> None:
    assert round_up(peak) == pytest.approx(top)


@pytest.mark.parametrize(
    ("peak", "top"), [(1.9, 2.0), (73.0, 120.0), (4000.0, 7200.0), (90000.0, 172800.0)]
)
def test_an_axis_of_times_ends_at_round_minutes_hours_or_days(
    peak: float, top: float
) -> None:
    assert round_up_duration(peak) == pytest.approx(top)
