"""What counts of a run at a fixed rate, and when it does not count at all."""

from pathlib import Path
from typing import Any, cast

import pytest

from bench.latency import Latency, latency, percentile, sustained
from bench.load import Load


def planned(rate: float = 100.0) -> Load:
    return Load(cast("Any", Path()), low=0, rate=rate, seconds=2.0, begins=1000.0)


def test_percentiles_are_values_that_were_seen() -> None:
    values = [float(value) for value in range(1, 101)]
    assert [percentile(values, share) for share in (50, 99, 100)] == [50, 99, 100]
    assert percentile([3.0], 50) == 3.0


def test_rows_of_the_warm_up_do_not_count() -> None:
    load = planned()
    received = [
        (key, load.due(key), load.due(key) + (9.0 if key < 100 else 0.002))
        for key in range(200)
    ]
    found = latency(load, received, warm_s=1.0)
    assert found.max_ms == pytest.approx(2, abs=0.01)
    assert found.void == ""


def test_a_writer_that_fell_behind_makes_the_run_void() -> None:
    load = planned()
    received = [
        (key, load.due(key) + key / 1000, load.due(key) + key / 1000 + 0.001)
        for key in range(200)
    ]
    assert "fell 0.2 s behind" in latency(load, received, warm_s=0.0).void


@pytest.mark.parametrize(
    ("most", "expected"), [(500, 1000), (1000, 1000), (5000, 4000), (6000, 5657)]
)
def test_the_highest_rate_is_found_to_a_factor_of_the_square_root_of_two(
    most: float, expected: float
) -> None:
    tried, said = list[float](), list[str]()

    def run(rate: float) -> Latency:
        tried.append(rate)
        disturbed = rate == 2000 and tried.count(rate) == 1
        void = "behind" if rate > most or disturbed else ""
        return Latency(rate, 1.0, 2.0, 3.0, 1.0, void=void)

    assert round(sustained(run, said.append, 3).rate) == expected
    assert len(tried) == len(said)
    assert max(map(tried.count, tried)) == 3


def test_a_glance_tries_a_rate_once() -> None:
    tried = []

    def run(rate: float) -> Latency:
        tried.append(rate)
        return Latency(rate, 1.0, 2.0, 3.0, 1.0, void="behind" if rate > 2000 else "")

    assert sustained(run, lambda _: None, 1).rate == 2000
    assert [round(rate) for rate in tried] == [1000, 2000, 4000, 2828]
