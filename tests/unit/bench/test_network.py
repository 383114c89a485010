"""Figures count only where answers really took so long, and the link was taken."""

import pytest

from bench.far_kafka import Link, RoundTrip
from bench.network import Far
from bench.programs import COMPILED, Variant


class Stub(Link):
    """A link that nobody started."""

    sent = 5_000

    def __init__(self) -> None:
        super().__init__(20)
        self.took = [(1.0, 9.0), (2.0, 0.0202), (3.0, 0.0204)]


def test_round_trips_count_from_when_the_run_began() -> None:
    found = Stub().round_trip(2.0)
    assert found.asked == 2
    assert (found.least_ms, found.p99_ms) == pytest.approx((20.2, 20.4))
    with pytest.raises(SystemExit, match="nothing was answered"):
        Stub().round_trip(4.0)


def test_who_went_round_its_link_is_refused() -> None:
    way = Far(Variant(COMPILED, "compiled"), Stub())
    assert way.check(1_000, 0, 2.0) == Stub().round_trip(2.0)
    with pytest.raises(SystemExit, match="another way"):
        way.check(1_000, 1, 2.0)


def test_a_link_that_is_too_fast_is_refused() -> None:
    link = Stub()
    link.took.append((3.0, 0.0199))
    with pytest.raises(SystemExit, match=r"an answer took 19\.90 ms"):
        Far(Variant(COMPILED, "compiled"), link).check(1_000, 0, 2.0)


@pytest.mark.parametrize(
    ("median", "words"),
    [(20.4, ""), (25.9, ""), (26.1, "answers took 26.1 ms, not 20")],
)
def test_a_link_that_is_far_slower_is_told(median: float, words: str) -> None:
    way = Far(Variant(COMPILED, "compiled"), Stub())
    assert way.slow(RoundTrip(median, 90.0, 20.1, 100)) == words


def test_a_direct_way_has_nothing_to_prove() -> None:
    way = Far(Variant(COMPILED, "compiled"))
    assert way.check(1_000, 0, 0.0) is None
    assert way.slow(None) == ""
