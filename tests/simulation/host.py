"""Time, threads and waits of a process in a world, as `walstream.telemetry.runtime`."""

from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Executor, Future
from dataclasses import dataclass
from typing import Any, Final, cast

from tests.simulation.world import Fiber, Process, World, void
from walstream.pipeline.shutdown import Stop, Waker
from walstream.telemetry.runtime import HasFileno, Runtime

_PULSE_S: Final = 0.25
# threads that have a stack of their own
_OF_ITS_OWN: Final = ("join", "consumer", "transactions")
_SHUTDOWN_S: Final = 10.0


class SimFuture(Future[Any]):
    """A future whose waits let virtual time pass, without a lock: they run alone."""

    def __init__(self, world: World) -> None:  # its parent's makes a lock
        self._world = world
        self._over = self._cancelled = False
        self._answer: Any = None
        self._error: BaseException | None = None
        self._heard: list[Callable[[Future[Any]], object]] = []

    def done(self) -> bool:
        return self._over

    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> bool:
        if not self._over:
            self._cancelled = True
            self._end()
        return self._cancelled

    def set_running_or_notify_cancel(self) -> bool:
        return not self._cancelled

    def add_done_callback(self, fn: Callable[[Future[Any]], object]) -> None:
        if self._over:
            fn(self)
        else:
            self._heard.append(fn)

    def set_result(self, result: Any) -> None:
        self._answer = result
        self._end()

    def set_exception(self, exception: BaseException | None) -> None:
        self._error = exception
        self._end()

    def _end(self) -> None:
        self._over = True
        for hear in self._heard:
            hear(self)

    def _await(self, timeout: float | None) -> None:
        if not self._over and not self._world.wait(self.done, timeout):
            raise TimeoutError
        if self._cancelled:
            raise CancelledError

    def result(self, timeout: float | None = None) -> Any:
        self._await(timeout)
        if self._error is not None:
            raise self._error
        return self._answer

    def exception(self, timeout: float | None = None) -> BaseException | None:
        self._await(timeout)
        return self._error


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
            self._world.at(delay, lambda: self._begin(future, task), self._owner)

    def _begin(self, future: SimFuture, task: Callable[[], Any]) -> None:
        if self._owner is not None and self._name.startswith(_OF_ITS_OWN):
            self._world.spawn(self._owner, lambda: self._run(future, task))
        else:
            self._run(future, task)

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
        self._world.rest(self.is_set, timeout)
        return self._is_set


class SimPoller:
    def __init__(self, world: World) -> None:
        self._world = world
        self._watched: list[int] = []

    def register(self, fd: int | HasFileno, _mask: int, /) -> None:
        self._watched.append(fd if isinstance(fd, int) else fd.fileno())

    def _ready(self) -> bool:
        readable = self._world.descriptors
        for number in self._watched:  # noqa: SIM110 - a generator costs more
            if readable[number]():
                return True
        return False

    def poll(self, timeout_ms: float, /) -> list[tuple[int, int]]:
        if timeout_ms:
            self._world.port("poll")
            self._world.rest(self._ready, timeout_ms / 1000)
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
        elif name.startswith(_OF_ITS_OWN) and owner is not None:
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


def process_in(world: World, name: str = "") -> Process:
    """Make a process of its own runtime."""
    return Process(cast("Runtime", SimRuntime(world)), name)


def stop_of(world: World) -> Stop:
    """Make the stop request of a process that runs now."""
    return Stop(cast("Waker", SimWaker(world)), _SHUTDOWN_S)
