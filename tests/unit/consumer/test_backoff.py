"""Waits before the next try."""

from consumer.backoff import Backoff


def test_waits_double_up_to_the_longest_and_a_success_resets() -> None:
    backoff = Backoff(first_s=1, longest_s=4)
    for longest in (1, 2, 4, 4):
        assert 0.75 * longest <= backoff.next() <= longest
    backoff.reset()
    assert backoff.next() <= 1
