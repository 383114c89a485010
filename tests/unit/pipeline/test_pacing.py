"""When the loop rests: never the first after silence, never for nothing."""

import os
import select
from collections.abc import Iterator

import pytest

from tests.support.runtime import altered
from tests.unit.pipeline.test_rate_limit import Limited, rows
from walstream.pipeline.pacing import IDLE_S, Pace
from walstream.pipeline.shutdown import Waker


class Pipe:
    """A source that has something when it was written to."""

    def __init__(self) -> None:
        self.out, self.into = os.pipe()

    def fileno(self) -> int:
        return self.out


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    os.close(made.out)
    os.close(made.into)


@pytest.fixture
def naps() -> Iterator[list[float]]:
    """Note for how long is slept, instead of that."""
    found: list[float] = []
    with altered(sleep=found.append):
        yield found


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Note how many milliseconds are waited at most, instead of that."""
    found: list[float] = []
    real = select.poll

    class Poll:
        def __init__(self) -> None:
            self.real = real()
            self.register = self.real.register

        def poll(self, timeout_ms: float) -> list[tuple[int, int]]:
            found.append(timeout_ms)
            return self.real.poll(0)

    monkeypatch.setattr(select, "poll", Poll)
    return found


def rest(pace: Pace, *, in_flight: int = 0, due_s: float = 9.0) -> None:
    pace.rest(Waker(), readable=True, in_flight=in_flight, due_s=due_s)


def test_the_first_frames_after_silence_do_not_wait(
    pipe: Pipe, naps: list[float]
) -> None:
    pace = Pace(pipe)
    pace.go_on([b"x"] * 3)
    rest(pace)
    pace.go_on([b"x"] * 3)
    assert naps == []


def test_few_that_hold_much_do_not_wait(pipe: Pipe, naps: list[float]) -> None:
    pace = Pace(pipe)
    for _ in range(3):
        pace.go_on([b"x" * 1600] * 36)
    assert naps == []


def test_few_frames_twice_in_a_row_gather(pipe: Pipe, naps: list[float]) -> None:
    pace = Pace(pipe)
    pace.go_on([b"x"] * 3)
    pace.go_on([b"x"] * 3)
    assert len(naps) == 1
    assert 0 < naps[0] <= 0.001


@pytest.mark.parametrize("frames", [0, 500])
def test_what_fills_a_turn_or_is_no_frame_does_not_wait(
    pipe: Pipe, naps: list[float], frames: int
) -> None:
    pace = Pace(pipe)
    pace.go_on([b"x"] * frames)
    pace.go_on([b"x"] * frames)
    assert naps == []


def test_the_first_rest_after_work_goes_round_once_more(
    pipe: Pipe, waits: list[float]
) -> None:
    pace = Pace(pipe)
    pace.go_on([b"x"] * 3)
    rest(pace)
    assert waits == []
    rest(pace)
    assert waits == [IDLE_S * 1000]


def test_deliveries_are_looked_for_often_and_those_that_are_stuck_seldom(
    pipe: Pipe, waits: list[float]
) -> None:
    now = [100.0]
    with altered(monotonic=lambda: now[0]):
        pace = Pace(pipe)
    rest(pace, in_flight=5)
    now[0] += 10
    rest(pace, in_flight=5)
    rest(pace, in_flight=4)
    often, seldom, again = waits
    assert often == again < seldom


def test_a_timer_that_is_due_sooner_ends_the_rest(
    pipe: Pipe, waits: list[float]
) -> None:
    rest(Pace(pipe), due_s=0.02)
    assert waits == [20.0]


def test_what_is_there_to_read_ends_the_rest(pipe: Pipe) -> None:
    os.write(pipe.into, b"x")
    rest(Pace(pipe), due_s=float("inf"))  # else it never ended


def test_a_waker_ends_the_rest_and_is_at_rest_then(pipe: Pipe) -> None:
    waker = Waker()
    waker.wake()
    Pace(pipe).rest(waker, readable=False, in_flight=0, due_s=float("inf"))
    assert select.select([waker], [], [], 0) == ([], [], [])


def test_a_limit_that_holds_is_waited_for_though_there_is_something_to_read(
    pipe: Pipe, waits: list[float]
) -> None:
    os.write(pipe.into, b"x")
    limited = Limited(rows=10)
    pace = Pace(pipe, limited.limit)
    limited.after(0, rows(11))
    rest(pace)
    assert [round(one) for one in waits] == [100]
    pace.lift()
    rest(pace)
    assert waits[1:] == [9000.0] or waits[1:] == [IDLE_S * 1000]


def test_room_that_is_missing_is_looked_for_often(
    pipe: Pipe, waits: list[float]
) -> None:
    Pace(pipe).rest(Waker(), readable=False, in_flight=0, due_s=9.0, room=False)
    assert waits == [10.0]
