"""Time, random numbers, threads and what the loop waits for, for the whole program.

Nothing else reads a clock, sleeps, draws a number or starts a thread, so that a test
can replace all of them by one seeded implementation (`use`). Code that runs for each
transaction takes its function from `current` once, and pays for no look-up.
"""

import random as _random
import secrets
import select
import threading
import time as _time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, TypeVarTuple

Arguments = TypeVarTuple("Arguments")


class StartedThread(Protocol):
    """A thread that runs; the process ends without it."""

    def join(self, timeout: float | None = None) -> None: ...

    def is_alive(self) -> bool: ...


class ThreadEvent(Protocol):
    """A flag that threads wait for, as threading.Event."""

    def is_set(self) -> bool: ...

    def set(self) -> None: ...

    def wait(self, timeout: float | None = None) -> bool: ...


class HasFileno(Protocol):
    """Object with a descriptor, as a socket."""

    def fileno(self) -> int: ...


class DescriptorPoll(Protocol):
    """Wait for descriptors, as the object of select.poll."""

    def register(self, fd: int | HasFileno, eventmask: int, /) -> None: ...

    def poll(self, timeout_ms: float, /) -> list[tuple[int, int]]: ...


class Runtime(Protocol):
    """Time, random numbers and threads, as an implementation has them."""

    def __hash__(self) -> int: ...  # a cache may have one for each

    def monotonic(self) -> float: ...

    def perf_counter(self) -> float: ...

    def time(self) -> float: ...

    def time_ns(self) -> int: ...

    def since_boot(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...

    def uniform(self, a: float, b: float) -> float: ...

    def randrange(self, start: int, /) -> int: ...

    def token_hex(self, nbytes: int, /) -> str: ...

    def start_thread(
        self,
        target: Callable[[*Arguments], object],
        name: str,
        *arguments: *Arguments,
    ) -> StartedThread: ...

    def thread_pool(self, max_workers: int, thread_name_prefix: str) -> Executor: ...

    def event(self) -> ThreadEvent: ...

    def poller(self) -> DescriptorPoll: ...


class SystemRuntime:
    """The machine's: the functions of the standard library themselves."""

    monotonic = staticmethod(_time.monotonic)
    perf_counter = staticmethod(_time.perf_counter)
    time = staticmethod(_time.time)
    time_ns = staticmethod(_time.time_ns)
    sleep = staticmethod(_time.sleep)
    uniform = staticmethod(_random.uniform)
    randrange = staticmethod(_random.randrange)
    token_hex = staticmethod(secrets.token_hex)
    thread_pool = staticmethod(ThreadPoolExecutor)
    event = staticmethod(threading.Event)

    def poller(self) -> DescriptorPoll:
        return select.poll()  # not select: it ends at descriptor 1023

    def since_boot(self) -> float:
        return _time.clock_gettime(_time.CLOCK_BOOTTIME)

    def start_thread(
        self,
        target: Callable[[*Arguments], object],
        name: str,
        *arguments: *Arguments,
    ) -> StartedThread:
        thread = threading.Thread(target=target, name=name, args=arguments, daemon=True)
        thread.start()
        return thread


_current: Runtime = SystemRuntime()


def current() -> Runtime:
    """Return the implementation that counts now."""
    return _current


@contextmanager
def use(other: Runtime) -> Iterator[None]:
    """Replace the implementation, for all threads, until the end of the block."""
    global _current  # noqa: PLW0603 - a process has one
    before, _current = _current, other
    try:
        yield
    finally:
        _current = before


def monotonic() -> float:
    """Return seconds that no one can set."""
    return _current.monotonic()


def perf_counter() -> float:
    """Return seconds by the finest clock, for what takes little time."""
    return _current.perf_counter()


def time() -> float:
    """Return the Unix time."""
    return _current.time()


def time_ns() -> int:
    """Return the Unix time in nanoseconds."""
    return _current.time_ns()


def since_boot() -> float:
    """Return seconds since the machine was started, those of its sleep included."""
    return _current.since_boot()


def sleep(seconds: float) -> None:
    """Wait for so long."""
    _current.sleep(seconds)


def uniform(low: float, high: float) -> float:
    """Draw a number between two."""
    return _current.uniform(low, high)


def randrange(end: int) -> int:
    """Draw a number from 0 on, below `end`."""
    return _current.randrange(end)


def token_hex(length: int) -> str:
    """Draw so many bytes that nobody can guess, and write them in hexadecimal."""
    return _current.token_hex(length)


def start_thread(
    target: Callable[[*Arguments], object],
    name: str,
    *arguments: *Arguments,
) -> StartedThread:
    """Run it in a thread of its own, which the end of the process does not await."""
    return _current.start_thread(target, name, *arguments)


def thread_pool(max_workers: int, thread_name_prefix: str) -> Executor:
    """Return threads that take tasks."""
    return _current.thread_pool(max_workers, thread_name_prefix)


def event() -> ThreadEvent:
    """Return a flag that threads can wait for."""
    return _current.event()
