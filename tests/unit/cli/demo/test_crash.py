"""Which changes the crash held up."""

import pytest

from walstream.cli.demo.crash import DeliveryGap


@pytest.mark.parametrize(
    ("committed_ms", "latency_ms", "delayed"),
    [
        (900, 10, False),  # arrived before
        (990, 2000, True),  # under way when it happened
        (1500, 600, True),  # written meanwhile
        (2500, 10, False),  # written after
    ],
)
def test_outage_delays_what_was_under_way_or_written_in_it(
    committed_ms: float, latency_ms: float, delayed: bool
) -> None:
    assert DeliveryGap(1000, 2000).delayed(committed_ms, latency_ms) is delayed
