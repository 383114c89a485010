"""How long to wait before the next try."""

from walstream.pipeline.backoff import Backoff


def test_waits_double_up_to_the_longest() -> None:
    backoff = Backoff(first_s=1.0, longest_s=5.0)
    waits = [backoff.next() for _ in range(6)]
    bounds = [1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
    assert all(0.75 * b <= w <= b for w, b in zip(waits, bounds, strict=True))


def test_success_begins_anew() -> None:
    backoff = Backoff(first_s=1.0, longest_s=5.0)
    for _ in range(4):
        backoff.next()
    backoff.reset()
    assert backoff.next() <= 1.0


def test_waits_differ_between_those_who_wait() -> None:
    assert len({Backoff(1.0).next() for _ in range(20)}) > 1
