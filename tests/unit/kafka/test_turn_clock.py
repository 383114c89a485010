"""The clock of a producer's turns; what it is for: test_sink.py."""

import time

import pytest

from walstream.kafka.turn_clock import TurnClock, stood_still


def test_a_turn_says_how_long_the_last_one_is_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [1000.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    clock = TurnClock()
    assert (clock.turn(), clock.now_ms) == (0, 1_000_000)
    now[0] += 31.5
    assert (clock.turn(), clock.now_ms) == (31_500, 1_031_500)
    assert clock.turn() == 0


def test_the_error_says_for_how_long() -> None:
    assert "stood still for 32 s" in str(stood_still(31_600))
