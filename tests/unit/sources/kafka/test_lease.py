"""A chain's records are given up before its partitions are somebody else's."""

from collections import deque

import pytest

from walstream.sources.kafka.lease import PartitionLease, RateWindow


@pytest.mark.parametrize("session_ms", [6000, 10_000, 45_000])
def test_records_are_given_up_before_the_session_ends(session_ms: int) -> None:
    leash = PartitionLease(session_ms)
    timeout_ms = leash.properties({})["message.timeout.ms"]
    assert 0 < timeout_ms < session_ms
    assert leash.frozen_after_ms < session_ms


def test_an_operators_time_out_rules_and_linger_fits_into_ours() -> None:
    leash = PartitionLease(10_000)
    assert leash.properties({"delivery.timeout.ms": "30000"}) == {}
    assert leash.properties({"linger.ms": "20000"})["message.timeout.ms"] > 20_000


def longest_wait(rates: list[int], size: int) -> float:
    """Fill the window of a broker that takes so many bytes in each second.

    Gives the longest time that a record was under way.
    """
    step = 0.005
    window = RateWindow(PartitionLease(10_000).give_up_s)
    under_way: deque[float] = deque()  # when each was put
    now, delivered, taken, longest = 0.0, 0, 0.0, 0.0
    for rate in rates:
        began = now
        while now - began < 1.0:
            taken += rate * step
            while under_way and taken >= size:
                put_at = under_way.popleft()
                taken -= size
                delivered += 1
                longest = max(longest, now - put_at)
            if not under_way:
                taken = 0.0
            quota = window.quota(now, delivered, len(under_way))
            while quota > 0:
                quota -= size
                window.put(size)
                under_way.append(now)
            now += step
    assert delivered > 0
    return longest


@pytest.mark.parametrize("size", [100, 10_000, 500_000])
@pytest.mark.parametrize("rate", [300_000, 3_000_000, 30_000_000])
def test_a_slow_broker_gets_no_more_than_it_takes_in_time(rate: int, size: int) -> None:
    give_up_s = PartitionLease(10_000).give_up_s
    assert longest_wait([rate] * 12, size) < give_up_s


def test_a_fast_broker_is_never_held_up() -> None:
    """What is taken at once widens the window, far beyond where it begins."""
    window = RateWindow(7.5)
    delivered, now, first = 0, 0.0, window.quota(0.0, 0, 0)
    for _ in range(400):
        quota = window.quota(now, delivered, 0)
        assert quota > 0
        for _ in range(min(int(quota / 100), 1000)):
            window.put(100)
        delivered += 1000
        now += 0.005
    assert window.quota(now, delivered, 0) > 20 * first
