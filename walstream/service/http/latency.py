"""Percentiles of a histogram: pure."""

from collections.abc import Sequence

from walstream.telemetry.counts import HistogramCounts
from walstream.telemetry.meter import LATENCY_S


def percentile(
    times: HistogramCounts, share: float, bounds: Sequence[float] = LATENCY_S
) -> float | None:
    """Return the duration that this share of them does not exceed, about.

    Durations are spread evenly between two bounds, as histogram_quantile of Prometheus
    has it. None: there are none. Above the last bound, that bound.
    """
    total = sum(times.counts)
    if not total:
        return None
    wanted, below, low = share * total, 0, 0.0
    for count, high in zip(times.counts, bounds, strict=False):
        if count and below + count >= wanted:
            return low + (high - low) * (wanted - below) / count
        below, low = below + count, high
    return bounds[-1]
