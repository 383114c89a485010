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
        self.drained = False
        self.holds = False

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


def test_one_record_at_a_time_is_no_stuck_kafka(pipe: Pipe, waits: list[float]) -> None:
    now = [100.0]
    with altered(monotonic=lambda: now[0]):
        pace = Pace(pipe)
    rest(pace, in_flight=1)
    rest(pace, in_flight=0)  # it was delivered
    now[0] += 10
    rest(pace, in_flight=1)  # the next one, after a silence
    assert waits[-1] == 1.0, "looks for its delivery each ms"


@pytest.mark.parametrize("readable", [True, False])
def test_frames_that_a_hold_lets_go_are_not_slept_over(
    pipe: Pipe, waits: list[float], *, readable: bool
) -> None:
    """Nor does it spin on them where none may be read."""
    pipe.holds = True
    Pace(pipe).rest(Waker(), readable=readable, in_flight=0, due_s=9.0)
    assert waits == ([] if readable else [IDLE_S * 1000])


FEW = [b"x"] * 3


def test_a_turn_that_took_the_few_that_were_there_may_rest_at_once(
    pipe: Pipe, waits: list[float]
) -> None:
    pipe.drained = True
    pace = Pace(pipe)
    assert pace.go_on(FEW, ended=True)
    rest(pace)
    assert waits == [IDLE_S * 1000]


@pytest.mark.parametrize(
    ("frames", "ended", "drained"),
    [(FEW, False, True), (FEW, True, False), ([], True, True), (FEW * 99, True, True)],
)
def test_it_goes_on_while_there_may_be_more(
    pipe: Pipe, frames: list[bytes], *, ended: bool, drained: bool
) -> None:
    pipe.drained = drained
    assert not Pace(pipe).go_on(frames, ended=ended)


def test_a_second_turn_in_a_row_gathers_and_does_not_rest(
    pipe: Pipe, naps: list[float]
) -> None:
    pace = Pace(pipe)
    assert not pace.go_on(FEW, ended=True)
    pipe.drained = True
    assert not pace.go_on(FEW, ended=True)
    assert len(naps) == 1


class Far:
    """A pace whose clock is set, in front of a Kafka that is `answer_s` away."""

    def __init__(self, pipe: Pipe, answer_s: float) -> None:
        self.now = 100.0
        self.answer_s = answer_s
        pipe.drained = True
        with altered(monotonic=lambda: self.now):
            self.pace = Pace(pipe)

    def rest(self, *, in_flight: int = 5) -> None:
        self.pace.rest(
            Waker(),
            readable=True,
            in_flight=in_flight,
            due_s=9.0,
            answer_s=self.answer_s,
        )


def test_few_frames_gather_while_kafka_is_far_away(
    pipe: Pipe, waits: list[float]
) -> None:
    far = Far(pipe, 0.02)
    assert far.pace.go_on(FEW, ended=True)
    os.write(pipe.into, b"x")
    far.rest()
    assert waits == [5.0], "not read before that, though it is there"
    far.now += 0.004
    far.rest()
    assert [round(one, 3) for one in waits[1:]] == [1.0], "the rest of it"


def test_they_gather_no_longer_than_two_answers_take(
    pipe: Pipe, waits: list[float]
) -> None:
    far = Far(pipe, 0.0016)
    far.pace.go_on(FEW, ended=True)
    far.rest()
    assert waits == [3.2]


def test_the_first_frames_after_a_silence_are_read_at_once_also_then(
    pipe: Pipe,
) -> None:
    far = Far(pipe, 0.02)
    far.pace.go_on(FEW, ended=True)
    far.now += 0.01
    os.write(pipe.into, b"x")
    far.rest(in_flight=0)  # else it took half a second


@pytest.mark.parametrize("answer_s", [0.0, 0.0005])
def test_nothing_gathers_in_front_of_a_kafka_that_is_near(
    pipe: Pipe, waits: list[float], answer_s: float
) -> None:
    far = Far(pipe, answer_s)
    far.pace.go_on(FEW, ended=True)
    far.rest()
    assert waits == [1.0], "until the next look at what is in flight"


def test_a_backlog_never_gathers_so(pipe: Pipe, waits: list[float]) -> None:
    far = Far(pipe, 0.02)
    far.pace.go_on(FEW * 99)
    far.rest()
    far.rest()
    os.write(pipe.into, b"x")
    far.rest()
    assert waits == [5.0, 5.0], "what ends it is readable meanwhile"
