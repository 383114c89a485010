"""What is put up, and what is judged of it."""

from tests.unit.service.http.conftest import config, snapshot, told
from walstream.service.http.board import Board


def test_nothing_is_known_before_the_first_snapshot() -> None:
    assert Board(config()).truth() is None


def test_a_snapshot_is_the_truth_and_is_kept_in_series_and_events() -> None:
    board = Board(config(), lambda: 5.0)
    board.publish(snapshot(told(), made_at=5.0))
    truth = board.truth()
    assert truth is not None
    assert truth.well
    assert [one.ops_per_s for one in board.series.minutes["app"]] == [3.0]
    assert {event.what for event in board.log.events} >= {"streaming"}


def test_a_supervisor_that_does_not_turn_hangs() -> None:
    now = [5.0]
    board = Board(config(), lambda: now[0])
    board.publish(snapshot(told(), made_at=5.0))
    now[0] = 16.0
    truth = board.truth()
    assert truth is not None
    assert truth.hangs == "the supervisor has not responded for 11 s"
