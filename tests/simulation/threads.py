"""Locks, conditions and events of threads that are fibers, as `threading` has them."""

from typing import Self

from tests.simulation.host import SimEvent
from tests.simulation.world import World


class SimLock:
    def __init__(self, world: World) -> None:
        self._world = world
        self._held = False

    def acquire(self) -> bool:
        if self._held:
            self._world.wait(lambda: not self._held)
        self._held = True
        return True

    def release(self) -> None:
        self._held = False

    def __enter__(self) -> Self:
        self.acquire()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


class SimCondition:
    def __init__(self, world: World, lock: SimLock) -> None:
        self._world = world
        self._lock = lock
        self._waiting: list[list[bool]] = []  # each: was it notified?

    def wait(self, timeout: float | None = None) -> bool:
        told = [False]
        self._waiting.append(told)
        self._lock.release()
        self._world.wait(lambda: told[0], timeout)
        if told in self._waiting:
            self._waiting = [one for one in self._waiting if one is not told]
        self._lock.acquire()
        return told[0]

    def notify(self, n: int = 1) -> None:
        for told in self._waiting[:n]:
            told[0] = True
        del self._waiting[:n]

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class ClearedEvent(SimEvent):
    def clear(self) -> None:
        self._is_set = False


class SimThreading:
    """The module, as far as the consumer library uses it."""

    def __init__(self, world: World) -> None:
        self._world = world

    def current_thread(self) -> object:
        return self._world.fiber

    def main_thread(self) -> object:
        return self  # none of a world: no signal reaches it

    def get_ident(self) -> int:
        return id(self._world.fiber)

    def Lock(self) -> SimLock:  # noqa: N802 - its name there
        return SimLock(self._world)

    def Event(self) -> ClearedEvent:  # noqa: N802 - likewise
        return ClearedEvent(self._world)

    def Condition(self, lock: SimLock) -> SimCondition:  # noqa: N802 - likewise
        return SimCondition(self._world, lock)
