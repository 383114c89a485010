"""The clock of a producer's turns; what it is for: test_sink.py."""

from collections.abc import Iterator

import pytest
from structlog.testing import capture_logs

from tests.support.deadline import wait_until
from tests.support.runtime import altered
from walstream.kafka.freeze_clock import Pulse, TurnClock, process_pulse, stood_still


@pytest.fixture
def now() -> Iterator[list[float]]:
    """Hold the time."""
    held = [1000.0]
    with altered(time=lambda: held[0]):
        yield held


def test_a_turn_says_how_long_nothing_beat(now: list[float]) -> None:
    clock = TurnClock(Pulse())
    assert (clock.turn(), clock.now_ms) == (0, 1_000_000)
    now[0] += 31.5
    assert (clock.turn(), clock.now_ms) == (31_500, 1_031_500)
    assert clock.turn() == 0


def test_a_long_turn_of_a_process_that_runs_is_no_standing_still(
    now: list[float],
) -> None:
    pulse = Pulse()
    clock, other = TurnClock(pulse), TurnClock(pulse)
    for _ in range(120):  # a handler waits for a minute
        now[0] += 0.5
        pulse.beat()
    assert clock.turn() == 0
    now[0] += 40
    pulse.beat()  # that of the thread is first
    assert (clock.turn(), other.turn()) == (40_000, 40_000)


def test_what_is_closed_says_that_it_was_frozen(now: list[float]) -> None:
    clock = TurnClock(Pulse())
    with capture_logs() as logs:
        now[0] += 31.5
        assert clock.was_frozen(30_000)
        now[0] += 29
        assert not clock.was_frozen(30_000)
    (said,) = logs
    assert "was frozen for 32 s" in said["event"]


def test_the_process_has_a_pulse_of_its_own() -> None:
    pulse = process_pulse()
    assert process_pulse() is pulse
    before_ms = pulse.last_ms
    wait_until(lambda: pulse.last_ms > before_ms, 30, "it beats by itself")


def test_the_error_says_for_how_long() -> None:
    assert "was frozen for 32 s" in str(stood_still(31_600))
