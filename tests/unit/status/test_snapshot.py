"""Time goes on after a snapshot was made."""

from tests.unit.service.http.conftest import snapshot, told


def test_who_says_nothing_more_is_silent_in_three_seconds() -> None:
    made = snapshot(told(heard_at=100.0), made_at=100.0)
    assert not made.current(102.9).sources["app"].silent
    assert made.current(103.1).sources["app"].silent


def test_who_has_said_nothing_yet_is_only_starting() -> None:
    made = snapshot(told(heard_at=None), made_at=100.0)
    assert not made.current(110.0).sources["app"].silent


def test_who_does_not_run_is_not_silent() -> None:
    made = snapshot(told(heard_at=0.0, pid=None))
    assert not made.current(99.0).sources["app"].silent
