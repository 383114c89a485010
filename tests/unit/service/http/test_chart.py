"""A chart needs no script, and says in words what it shows."""

from walstream.service.http.chart import render
from walstream.service.http.figures import rate


def test_what_was_not_known_is_a_gap() -> None:
    points = [(0.0, 1.0), (2.0, 2.0), (4.0, None), (6.0, 3.0)]
    html = render("Read", "/s", points, rate)
    assert html.count("<polyline") == 2
    assert 'aria-label="Read, last 5 min: now 3.0/s, most 3.0/s"' in html


def test_nothing_is_drawn_of_nothing() -> None:
    assert "<polyline" not in render("Read", "/s", [], rate)
    assert "<polyline" not in render("Read", "/s", [(0.0, None)], rate)
