"""One virtual clock and scheduler: time passes only where somebody waits.

All runs on one stack. A thread pool's task is an event of the scheduler; a wait of the
program runs events until what it waits for is there, or its time is over. So one seed
gives one order of everything.
"""

import random
import zlib
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from heapq import heappop, heappush
from typing import Any, ClassVar, Final, Protocol

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


class Owner(Protocol):
    """A process, to which events belong; they end with it."""

    dead: bool
    frozen_until: float


class World:
    """Clock, events and randomness of one schedule."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self.now = 0.0
        self.wall = EPOCH  # what the wall clock shows more than `now`
        self.events: list[tuple[float, int, Owner | None, Callable[[], None]]] = []
        self._numbers = 0
        self.ran = 0
        self.owner: Owner | None = None  # the process that runs now
        self.nemesis: Nemesis | None = None
        self.calls: Counter[str] = Counter()  # of ports
        self.digest = 0  # of all that happened, in order
        self.descriptors: dict[int, Callable[[], bool]] = {}  # is it readable?

    def at(
        self, delay: float, act: Callable[[], None], owner: Owner | None = None
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
        while not over():
            if not self.step(deadline):
                if deadline == float("inf"):
                    raise Violation("a wait that nothing ends")
                self.now = max(self.now, deadline)
                return over()
        return True

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
        if owner is None or not owner.dead:
            if owner is not None and owner.frozen_until > self.now:
                self.at(owner.frozen_until - self.now, act, owner)
                return True
            act()
        return True

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


class SimThread:
    def join(self, timeout: float | None = None) -> None:
        pass

    def is_alive(self) -> bool:
        return False


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
        if name == "pulse":
            self._beat(target.__self__.beat)  # type: ignore[attr-defined]
        else:
            world.at(0.0, lambda: void(target(*arguments)), world.owner)
        return SimThread()

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


def void(_: object) -> None:
    """Drop an answer."""
