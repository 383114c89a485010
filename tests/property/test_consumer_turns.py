"""A consumer's lanes over few threads: order, the bound, and nobody starves."""

import heapq
import math
from itertools import count

from hypothesis import given
from hypothesis import strategies as st

from consumer.group.schedule import AGAIN, ON_CALL, After, Schedule

_LANES = 5


class Lane:
    """Handles one message a turn; some of its turns end with a pause instead."""

    def __init__(self, pauses: list[float]) -> None:
        self.inbox: list[int] = []
        self.handled: list[int] = []
        self.pauses = pauses
        self.running = self.pausing = False
        self.passed_by = 0  # turns of others while it could have had one

    @property
    def waits(self) -> bool:
        return bool(self.inbox) and not self.running and not self.pausing

    def turn(self) -> After:
        self.pausing = False
        if not self.inbox:
            return ON_CALL
        if self.pauses:
            self.pausing = True
            return After(self.pauses.pop(), deaf=True)
        self.handled.append(self.inbox.pop(0))
        return AGAIN


@given(
    threads=st.integers(1, 3),
    arrivals=st.lists(st.integers(0, _LANES - 1), max_size=60),
    pauses=st.lists(
        st.lists(st.floats(0.01, 5), max_size=3), min_size=_LANES, max_size=_LANES
    ),
    lengths=st.lists(st.floats(0.01, 2), min_size=1),
)
def test_each_lane_keeps_its_order_and_gets_its_turns(
    threads: int, arrivals: list[int], pauses: list[list[float]], lengths: list[float]
) -> None:
    lanes = [Lane(list(waits)) for waits in pauses]
    run = Run(lanes, threads, lengths)
    for number, place in enumerate(arrivals):
        lanes[place].inbox.append(number)
        run.schedule.call(lanes[place])
        run.step()
    while run.step():
        pass
    for place, lane in enumerate(lanes):
        assert lane.handled == [n for n, at in enumerate(arrivals) if at == place]
        assert lane.inbox == []


class Run:
    """Virtual time: threads take turns of any length while messages arrive."""

    def __init__(self, lanes: list[Lane], threads: int, lengths: list[float]) -> None:
        self.schedule: Schedule[Lane] = Schedule()
        for lane in lanes:
            self.schedule.add(lane)
        self._lanes, self._threads, self._lengths = lanes, threads, lengths
        self._numbers = count()
        self._running: list[tuple[float, int, Lane]] = []
        self._now = 0.0

    def step(self) -> bool:
        """Begin what turns can begin, and end one; False: all rests."""
        self.schedule.ripen(self._now)
        while len(self._running) < self._threads:
            lane = self.schedule.take()
            if lane is None:
                break
            self._begin(lane)
        assert len(self._running) <= self._threads
        due = self.schedule.due
        if self._running and self._running[0][0] <= due:
            self._now, _, lane = heapq.heappop(self._running)
            lane.running = False
            self.schedule.give_back(lane, lane.turn(), self._now)
        elif due < math.inf:
            self._now = due
        else:
            return False
        return True

    def _begin(self, lane: Lane) -> None:
        assert not lane.running
        lane.running, lane.passed_by = True, 0
        number = next(self._numbers)
        until = self._now + self._lengths[number % len(self._lengths)]
        heapq.heappush(self._running, (until, number, lane))
        for other in self._lanes:
            if other is not lane and other.waits:
                other.passed_by += 1
                assert other.passed_by <= 2 * _LANES
