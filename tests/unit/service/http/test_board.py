"""What is put up, and the samples of the charts."""

from tests.unit.service.http.conftest import config, snapshot, told
from walstream.service.http.board import SAMPLES, Board


def test_samples_are_taken_now_and_then_and_a_dead_worker_leaves_a_gap() -> None:
    now = [0.0]
    board = Board(config(), lambda: now[0])
    for pid in (7, None):
        board.publish(snapshot(told(pid=pid)))
        board.publish(snapshot(told(pid=pid)))  # too soon
        now[0] += 2.0
    assert [one.ops_per_s for one in board.samples["app"]] == [3.0, None]


def test_samples_are_bounded() -> None:
    now = [0.0]
    board = Board(config(), lambda: now[0])
    for _ in range(SAMPLES + 10):
        board.publish(snapshot(told()))
        now[0] += 2.0
    assert len(board.samples["app"]) == SAMPLES


def test_nothing_is_known_before_the_first_snapshot() -> None:
    assert Board(config()).truth() is None
