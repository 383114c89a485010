"""Figures of a chained source."""

from walstream.chaining.figures import Figures


def test_figures_go_on_from_what_was_kept() -> None:
    figures = Figures({"ops": 5, "delivered": 4, "poisoned": {"x": 1}})
    figures.read += 1
    figures.delivered += 1
    assert not figures.poison("x")
    assert figures.poison("y")
    report = figures.report()
    assert (report["ops"], report["delivered"]) == (6, 5)
    assert report["poisoned"] == {"x": 2, "y": 1}
    assert report["lag_records"] is None
    assert Figures(figures.kept()).report()["ops"] == 6


def test_causes_are_told_apart_up_to_a_number() -> None:
    figures = Figures(None)
    for number in range(300):
        figures.poison(str(number))
    assert len(figures.poisoned) == 101
    assert figures.poisoned["others"] == 200
