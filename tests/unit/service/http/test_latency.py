"""Percentiles of a histogram."""

import pytest

from walstream.service.http.latency import percentile
from walstream.telemetry.counts import HistogramCounts

BOUNDS = (1.0, 2.0, 4.0)


@pytest.mark.parametrize(
    ("counts", "share", "expected"),
    [
        ((10, 0, 0, 0), 0.5, 0.5),
        ((0, 10, 0, 0), 0.5, 1.5),
        ((50, 40, 10, 0), 0.99, 3.8),
        ((0, 0, 0, 5), 0.99, 4.0),  # above all bounds: not less than the last
        ((0, 0, 0, 0), 0.5, None),
    ],
)
def test_percentiles_are_spread_evenly_between_two_bounds(
    counts: tuple[int, ...], share: float, expected: float | None
) -> None:
    found = percentile(HistogramCounts(counts, 0.0), share, BOUNDS)
    assert found == (expected if expected is None else pytest.approx(expected))
