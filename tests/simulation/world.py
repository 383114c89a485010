"""One virtual clock and scheduler: time passes only where somebody waits.

A thread pool's task is an event of the scheduler; a wait of the program runs events
until what it waits for is there, or its time is over. What goes on beside it for long,
a second process, has a stack of its own (`Fiber`), which runs while the scheduler lets
it. So one seed gives one order of everything.
"""

import random
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import ClassVar, Final

from greenlet import getcurrent, greenlet

from walstream.telemetry import runtime
from walstream.telemetry.runtime import Runtime

EPOCH: Final = 1_800_000_000.0
_PULSE_S: Final = 0.25
_MOST_EVENTS: Final = 1_000_000  # who waits at a Truncate asks 10,000 times or more
_OVERSLEEP_S: Final = 0.2  # of a short rest, while nothing happens
_FIRST_DESCRIPTOR: Final = 1 << 20  # no file of the machine has such a number

Nemesis = Callable[[str], None]


class Killed(BaseException):
    """The process got SIGKILL: what it still does on its way out has no effect."""


class Violation(BaseException):
    """A checker found what may not be; the first counts, whatever comes of it."""

    first: ClassVar[str] = ""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        Violation.first = Violation.first or what


@dataclass(eq=False)
class Process:
    """One life of a program, to which events belong; they end with it."""

    runtime: Runtime
    name: str = ""
    dead: bool = False
    frozen_until: float = 0.0
    rested: int = -1  # how much had happened when it last rested
    reads_since: float = 0.0  # when the slot's connection that it reads was opened
    port: str = ""  # that it called last, if anybody asks

    def awake(self, now: float) -> bool:
        return self.frozen_until <= now


class Fiber:
    """A stack of its own, of which no code runs but while others wait."""

    def __init__(self, world: "World", owner: Process, run: Callable[[], None]) -> None:
        self.owner = owner
        self.over: Callable[[], bool] = lambda: True  # may it go on?
        self.ended = False
        self._world = world
        self._run = run
        self._stack = greenlet(self._live)
        self._caller = getcurrent()  # who let it go on, where it is at its end, too

    def _live(self) -> None:
        try:
            if not self.owner.dead:
                self._run()
        except (Killed, Violation):
            pass
        except BaseException as error:  # noqa: BLE001 - it is the schedule's outcome
            Violation(f"a defect: {error!r}")
        self.ended = True

    def go_on(self) -> None:
        """Let it run until it waits again."""
        world, before = self._world, self._world.fiber
        world.fiber = self
        world.run_as(self.owner, self._let_go_on)
        world.fiber = before

    def _let_go_on(self) -> None:
        self._caller = self._stack.parent = getcurrent()
        self._stack.switch()

    def wait(self, over: Callable[[], bool]) -> None:
        """Let the others run until something is so; called by itself alone."""
        self.over = over
        self._caller.switch()
        if self.owner.dead or Violation.first:
            raise Killed


class World:
    """Clock, events and randomness of one schedule."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self.now = 0.0
        self.wall = EPOCH  # what the wall clock shows more than `now`
        self.events: list[tuple[float, int, Process | None, Callable[[], None]]] = []
        self.fibers: list[Fiber] = []
        self.fiber: Fiber | None = None  # that runs now
        self._numbers = 0
        self.ran = 0
        self.happened = 0  # of those, all but ends of waits
        self.owner: Process | None = None  # the process that runs now
        self.nemesis: Nemesis | None = None
        self.calls: Counter[str] = Counter()  # of ports
        self.digest = 0  # of all that happened, in order
        self.descriptors: dict[int, Callable[[], bool]] = {}  # is it readable?

    def at(
        self, delay: float, act: Callable[[], None], owner: Process | None = None
    ) -> None:
        """Have something happen after a while."""
        self._numbers += 1
        heappush(self.events, (self.now + delay, self._numbers, owner, act))

    def port(self, name: str) -> None:
        """Pass a call of a port, or what a nemesis makes of it."""
        owner = self.owner
        if Violation.first or (owner is not None and owner.dead):
            raise Killed
        self.calls[name] += 1
        if self.nemesis is not None:
            self.nemesis(name)

    def note(self, what: str, value: bytes = b"") -> None:
        """Add to the digest by which two runs are compared."""
        self.digest = zlib.crc32(value, self.digest)
        self.digest = zlib.crc32(f"{self.now:.6f} {what}".encode(), self.digest)

    def wait(self, over: Callable[[], bool], timeout: float | None = None) -> bool:
        """Let time pass until something is so; False: it was not in time."""
        deadline = float("inf") if timeout is None else self.now + timeout
        waiting = self.owner
        if waiting is not None and waiting.dead:
            raise Killed
        if self.fiber is not None:
            if timeout is not None:
                self.at(timeout, nothing)
            if not over():
                self.fiber.wait(lambda: over() or self.now >= deadline)
            return over()
        while not over():
            if self.fibers and self._let_go_on():
                continue
            if not self.step(deadline):
                if deadline == float("inf"):
                    raise Violation("a wait that nothing ends")
                self.now = max(self.now, deadline)
                return over()
            if waiting is not None and waiting.dead:
                raise Killed
        return True

    def rest(self, over: Callable[[], bool], timeout: float | None) -> None:
        """Wait; when nothing happened since the last rest, until something does.

        A loop that looks each millisecond finds the same a thousand times: its process
        oversleeps instead, as a machine lets it.
        """
        owner = self.owner
        if timeout is None or owner is None or timeout >= _OVERSLEEP_S:
            self.wait(over, timeout)
            return
        before = self.happened
        if owner.rested == before:
            self.wait(lambda: self.happened != before or over(), _OVERSLEEP_S)
            if self.happened == before:
                return
        self.wait(over, timeout)
        owner.rested = self.happened

    def pass_by(self) -> None:
        """Let happen what is due; one that has a stack of its own waits later."""
        events = self.events
        if self.fiber is None:
            while events and events[0][0] <= self.now:
                self.step(self.now)
            if self.owner is not None and self.owner.dead:
                raise Killed

    def finish(self) -> None:
        """End every stack that is left."""
        for fiber in self.fibers:
            fiber.owner.dead = True
            while not fiber.ended:
                fiber.go_on()
        self.fibers.clear()

    def step(self, deadline: float) -> bool:
        """Run the next event that is due by then."""
        events = self.events
        if not events or events[0][0] > deadline:
            return False
        self.ran += 1
        if self.ran > _MOST_EVENTS:
            raise Violation("liveness: it never comes to rest")
        time, _, owner, act = heappop(events)
        self.now = max(self.now, time)
        if act is nothing:
            return True
        self.happened += 1
        if owner is None:
            act()
        elif not owner.dead:
            if owner.awake(self.now):
                self._act(owner, act)
            else:
                self.at(owner.frozen_until - self.now, act, owner)
        return True

    def _act(self, owner: Process, act: Callable[[], None]) -> None:
        """Run an event of a process; its end is not that of the one that waits."""
        waiting = self.owner
        if owner is waiting:
            act()
            return
        try:
            self.run_as(owner, act)
        except Killed:
            if Violation.first:
                raise

    def watch(
        self,
        over: Callable[[], bool],
        then: Callable[[], None],
        within_s: float,
        late: Callable[[], str],
    ) -> None:
        """Look twice a second whether something is so, then go on; it has a deadline.

        Raises Violation, a liveness of what is `late`.
        """
        deadline = self.now + within_s

        def look() -> None:
            if over():
                then()
            elif self.now > deadline:
                raise Violation(f"liveness: {late()}")
            else:
                self.at(0.5, look)

        look()

    def run_as(self, owner: Process, act: Callable[[], None]) -> None:
        """Have a process do something: as `owned`, in less time."""
        before, host = self.owner, runtime.current()
        self.owner, runtime._current = owner, owner.runtime
        try:
            act()
        finally:
            self.owner, runtime._current = before, host

    @contextmanager
    def owned(self, owner: Process) -> Iterator[None]:
        """Have a process run."""
        before, self.owner = self.owner, owner
        try:
            if before is owner:
                yield
            else:
                with runtime.use(owner.runtime):
                    yield
        finally:
            self.owner = before

    def spawn(self, owner: Process, run: Callable[[], None]) -> Fiber:
        """Give a process, or a thread of it, a stack of its own."""
        fiber = Fiber(self, owner, run)
        self.fibers.append(fiber)
        return fiber

    def _let_go_on(self) -> bool:
        """Let the first fiber run that waits for nothing; False: there is none."""
        for fiber in self.fibers:
            if fiber.owner.dead or (fiber.owner.awake(self.now) and fiber.over()):
                fiber.go_on()
                if fiber.ended:
                    self.fibers.remove(fiber)
                if Violation.first:
                    raise Killed
                return True
        return False

    def sleep(self, seconds: float) -> None:
        self.port("sleep")
        self.wait(lambda: False, seconds)

    def descriptor(self, readable: Callable[[], bool]) -> int:
        number = _FIRST_DESCRIPTOR + len(self.descriptors)
        self.descriptors[number] = readable
        return number


def nothing() -> None:
    """Wake the scheduler."""


def void(_: object) -> None:
    """Drop an answer."""
