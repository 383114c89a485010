"""Turns of many tasks on few threads. Pure: callers lock, and pass the time.

A task has at most one turn at a time. Those that are ready take turns in the order in
which they became so. One that waits is ready when its time is up, or at `call`. A deaf
wait (a backoff, a seek) ignores `call`: only `urge` ends it.
"""

import heapq
import math
from collections import deque
from typing import Final, Generic, NamedTuple, TypeVar

T = TypeVar("T")


class After(NamedTuple):
    """The wait after a turn."""

    seconds: float  # to the next one; 0: once the others had theirs
    deaf: bool = False


AGAIN: Final = After(0)
ON_CALL: Final = After(math.inf)


class _Entry:
    __slots__ = ("called", "deaf", "number", "ready", "running", "urged")

    def __init__(self) -> None:
        self.number = 0  # what stands in a queue under another one is void
        self.ready = self.running = self.deaf = False
        self.called = self.urged = False  # during its turn


class Schedule(Generic[T]):
    """The tasks, and which of them are ready. Tasks are told apart by identity."""

    def __init__(self) -> None:
        self._entries: dict[T, _Entry] = {}
        self._ready: deque[tuple[int, T]] = deque()
        self._waits: list[tuple[float, int, T]] = []
        self._number = 0

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, task: T, *, first: bool = False) -> None:
        """Let a new task have a turn, the next one or the last one."""
        self._entries[task] = _Entry()
        self._queue(task, first=first)

    def withdraw(self, task: T) -> bool:
        """Take a task out; False where it has its turn, or is not in."""
        entry = self._entries.get(task)
        if entry is None or entry.running:
            return False
        del self._entries[task]
        return True

    def call(self, task: T) -> bool:
        """Note that there is something to do; return whether that made it ready."""
        entry = self._entries.get(task)
        if entry is None or entry.deaf:
            return False
        if entry.running:
            entry.called = True
            return False
        return self._wake(task, entry)

    def urge(self, task: T) -> bool:
        """End any wait; tell whether that made it ready."""
        entry = self._entries.get(task)
        if entry is None:
            return False
        if entry.running:
            entry.urged = True
            return False
        return self._wake(task, entry)

    def take(self) -> T | None:
        """Begin the turn of the task that has been ready for longest."""
        while self._ready:
            number, task = self._ready.popleft()
            entry = self._entries.get(task)
            if entry is not None and entry.number == number:
                entry.ready, entry.running = False, True
                entry.called = entry.urged = False
                return task
        return None

    def give_back(self, task: T, after: After | None, now: float) -> None:
        """End a turn; after None the task is out."""
        entry = self._entries[task]
        if after is None:
            del self._entries[task]
            return
        entry.running = False
        heard = entry.urged or (entry.called and not after.deaf)
        if heard or after.seconds <= 0:
            self._queue(task)
            return
        entry.deaf = after.deaf
        entry.number = self._next_number()
        if after.seconds < math.inf:
            due = (now + after.seconds, entry.number, task)
            heapq.heappush(self._waits, due)

    def ripen(self, now: float) -> int:
        """Make those ready whose time is up; give their number."""
        count = 0
        while self._waits and self._waits[0][0] <= now:
            _, number, task = heapq.heappop(self._waits)
            if self._stands(task, number):
                self._queue(task)
                count += 1
        return count

    @property
    def due(self) -> float:
        """When the next wait is over."""
        while self._waits and not self._stands(self._waits[0][2], self._waits[0][1]):
            heapq.heappop(self._waits)
        return self._waits[0][0] if self._waits else math.inf

    def _stands(self, task: T, number: int) -> bool:
        entry = self._entries.get(task)
        return entry is not None and entry.number == number

    def _wake(self, task: T, entry: _Entry) -> bool:
        if entry.ready:
            return False
        self._queue(task)
        return True

    def _queue(self, task: T, *, first: bool = False) -> None:
        entry = self._entries[task]
        entry.number = self._next_number()
        entry.ready, entry.deaf = True, False
        if first:
            self._ready.appendleft((entry.number, task))
        else:
            self._ready.append((entry.number, task))

    def _next_number(self) -> int:
        self._number += 1
        return self._number
