"""One virtual clock and scheduler: time passes only where somebody waits.

A thread pool's task is an event of the scheduler; a wait of the program runs events
until what it waits for is there, or its time is over. What goes on beside it for long,
a second process, has a stack of its own (`Fiber`), which runs while the scheduler lets
it. So one seed gives one order of everything.
"""

import random
import zlib
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from threading import Semaphore, Thread
from typing import Any, ClassVar, Final, cast

from walstream.telemetry import runtime
from walstream.telemetry.runtime import HasFileno

EPOCH: Final = 1_800_000_000.0
_PULSE_S: Final = 0.25
_MOST_EVENTS: Final = 200_000
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

    world: "World"
    name: str = ""
    dead: bool = False
    frozen_until: float = 0.0

    def __post_init__(self) -> None:
        self.runtime = SimRuntime(self.world)

    def awake(self, now: float) -> bool:
        return self.frozen_until <= now


class Fiber:
    """A stack of its own: a thread of which no code runs but while others wait."""

    def __init__(self, world: "World", owner: Process, run: Callable[[], None]) -> None:
        self.owner = owner
        self.over: Callable[[], bool] = lambda: True  # may it go on?
        self.ended = False
        self._world = world
        self._run = run
        self._turn, self._back = Semaphore(0), Semaphore(0)
        Thread(target=self._live, daemon=True).start()

    def _live(self) -> None:
        self._turn.acquire()
        try:
            if not self.owner.dead:
                self._run()
        except (Killed, Violation):
            pass
        except BaseException as error:  # noqa: BLE001 - it is the schedule's outcome
            Violation(f"a defect: {error!r}")
        self.ended = True
        self._back.release()

    def go_on(self) -> None:
        """Let it run until it waits again."""
        world, before = self._world, self._world.fiber
        world.fiber = self
        with world.owned(self.owner):
            self._turn.release()
            self._back.acquire()
        world.fiber = before

    def wait(self, over: Callable[[], bool]) -> None:
        """Let the others run until something is so; called by itself alone."""
        self.over = over
        self._back.release()
        self._turn.acquire()
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

    def note(self, what: str) -> None:
        """Add to the digest by which two runs are compared."""
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
        try:
            with self.owned(owner):
                act()
        except Killed:
            if owner is waiting or Violation.first:
                raise

    @contextmanager
    def owned(self, owner: Process) -> Iterator[None]:
        """Have a process run."""
        before, self.owner = self.owner, owner
        try:
            if before is owner:
                yield
            else:
                with runtime.use(cast("runtime.Runtime", owner.runtime)):
                    yield
        finally:
            self.owner = before

    def spawn(self, owner: Process, run: Callable[[], None]) -> Fiber:
        """Give a process, or a thread of it, a stack of its own."""
        fiber = Fiber(self, owner, run)
        self.fibers.append(fiber)
        return fiber

    def _let_go_on(self) -> bool:
        """Let the first fiber run that has nothing to wait for; False: there is none."""
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


class SimFuture(Future[Any]):
    """A future whose waits let virtual time pass."""

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    def _await(self, timeout: float | None) -> None:
        if not self._world.wait(self.done, timeout):
            raise TimeoutError

    def result(self, timeout: float | None = None) -> Any:
        self._await(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._await(timeout)
        return super().exception(0)


class SimExecutor(Executor):
    """A pool whose tasks are events; one that waits lets others run above it."""

    def __init__(self, world: World, max_workers: int, name: str) -> None:
        self._world = world
        self._owner = world.owner
        self._most = self._free = max_workers
        self._name = name
        self._queue: deque[tuple[SimFuture, Callable[[], Any]]] = deque()

    def submit(
        self, task: Callable[..., Any], /, *given: Any, **named: Any
    ) -> SimFuture:
        future = SimFuture(self._world)
        self._queue.append((future, lambda: task(*given, **named)))
        self._schedule()
        return future

    def _schedule(self) -> None:
        if self._free and self._queue:
            self._free -= 1
            future, task = self._queue.popleft()
            delay = self._world.random.choice((0.0, 0.0, 0.0005, 0.004))
            self._world.at(delay, lambda: self._run(future, task), self._owner)

    def _run(self, future: SimFuture, task: Callable[[], Any]) -> None:
        if future.set_running_or_notify_cancel():
            self._world.port(f"thread {self._name}")
            try:
                answer = task()
            except Exception as error:  # noqa: BLE001 - as a pool does
                future.set_exception(error)
            else:
                future.set_result(answer)
        self._free += 1
        self._schedule()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        if cancel_futures:
            for future, _ in self._queue:
                future.cancel()
            self._queue.clear()
        if wait:
            self._world.port("join")
            self._world.wait(lambda: not self._queue and self._free == self._most)


class SimEvent:
    def __init__(self, world: World) -> None:
        self._world = world
        self._is_set = False

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True

    def wait(self, timeout: float | None = None) -> bool:
        self._world.port("wait")
        return self._world.wait(self.is_set, timeout)


class SimPoller:
    def __init__(self, world: World) -> None:
        self._world = world
        self._watched: list[int] = []

    def register(self, fd: int | HasFileno, _mask: int, /) -> None:
        self._watched.append(fd if isinstance(fd, int) else fd.fileno())

    def _ready(self) -> bool:
        readable = self._world.descriptors
        return any(readable[number]() for number in self._watched)

    def poll(self, timeout_ms: float, /) -> list[tuple[int, int]]:
        if timeout_ms:
            self._world.port("poll")
            self._world.wait(self._ready, timeout_ms / 1000)
        readable = self._world.descriptors
        return [(number, 1) for number in self._watched if readable[number]()]


class SimWaker:
    """The loop's waker, without a pipe."""

    def __init__(self, world: World) -> None:
        self._woken = False
        self._descriptor = world.descriptor(lambda: self._woken)

    def fileno(self) -> int:
        return self._descriptor

    def wake(self) -> None:
        self._woken = True

    def rest(self) -> None:
        self._woken = False


@dataclass
class SimThread:
    """A thread; one that is no fiber is over before anybody can ask."""

    world: World
    fiber: Fiber | None

    def join(self, timeout: float | None = None) -> None:
        self.world.port("join")
        self.world.wait(lambda: not self.is_alive(), timeout)

    def is_alive(self) -> bool:
        return self.fiber is not None and not self.fiber.ended


class SimRuntime:
    """Time, randomness and threads of one process in a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.sleep = world.sleep
        self.uniform = world.random.uniform
        self.randrange = world.random.randrange

    def monotonic(self) -> float:
        return self._world.now

    perf_counter = since_boot = monotonic

    def time(self) -> float:
        return self._world.wall + self._world.now

    def time_ns(self) -> int:
        return int(self.time() * 1e9)

    def token_hex(self, nbytes: int, /) -> str:
        return self._world.random.randbytes(nbytes).hex()

    def start_thread(
        self, target: Callable[..., object], name: str, *arguments: Any
    ) -> SimThread:
        world = self._world
        owner = world.owner
        if name == "pulse":
            self._beat(target.__self__.beat)  # type: ignore[attr-defined]
        elif name == "join" and owner is not None:
            fiber = world.spawn(owner, lambda: void(target(*arguments)))
            return SimThread(world, fiber)
        else:
            world.at(0.0, lambda: void(target(*arguments)), owner)
        return SimThread(world, None)

    def _beat(self, beat: Callable[[], object]) -> None:
        owner = self._world.owner

        def again() -> None:
            beat()
            self._world.at(_PULSE_S, again, owner)

        self._world.at(_PULSE_S, again, owner)

    def thread_pool(self, max_workers: int, thread_name_prefix: str) -> SimExecutor:
        return SimExecutor(self._world, max_workers, thread_name_prefix)

    def event(self) -> SimEvent:
        return SimEvent(self._world)

    def poller(self) -> SimPoller:
        return SimPoller(self._world)


def nothing() -> None:
    """Wake the scheduler."""


def void(_: object) -> None:
    """Drop an answer."""
