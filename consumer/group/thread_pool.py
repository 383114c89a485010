"""A few threads that give many tasks their turns."""

import math
import threading
from typing import Protocol

from consumer.group.schedule import After, Schedule
from walstream.telemetry import runtime


class Task(Protocol):
    def turn(self) -> After | None:
        """Do a piece of work, and raise nothing; None: there will be no other."""


class Pool:
    """Threads are started as they are needed, `most` at the most (None: any number).

    A task that waits holds none of them.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = math.inf if most is None else most
        self._schedule: Schedule[Task] = Schedule()
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._time = threading.Condition(self._lock)
        self._threads = 0
        self._idle = 0  # that wait, and were not notified
        self._timed = False  # whether there is a thread that looks at the clock
        self._timer_due = math.inf  # when it looks again
        self._closed = False

    def __len__(self) -> int:
        return len(self._schedule)

    def add(self, task: Task, *, first: bool = False) -> None:
        with self._lock:
            if not self._closed:
                self._schedule.add(task, first=first)
                self._employ()

    def withdraw(self, task: Task) -> bool:
        """Take a task out; False where it has its turn, or is not in."""
        with self._lock:
            return self._schedule.withdraw(task)

    def call(self, task: Task) -> None:
        """Note that there is something to do."""
        with self._lock:
            if self._schedule.call(task):
                self._employ()

    def urge(self, task: Task) -> None:
        """End any wait of a task."""
        with self._lock:
            if self._schedule.urge(task):
                self._employ()

    def close(self) -> None:
        """Let the threads end, each after the turn in hand."""
        with self._lock:
            self._closed = True
            self._work.notify_all()
            self._time.notify_all()

    def _employ(self) -> None:
        """Find a thread for a task that became ready."""
        if self._idle:
            self._idle -= 1
            self._work.notify()
        elif self._threads < self._most:
            self._threads += 1
            name = f"consumer-{self._threads}"
            runtime.start_thread(self._run, name)

    def _run(self) -> None:
        task = self._next()
        while task is not None:
            after = task.turn()
            with self._lock:
                self._schedule.give_back(task, after, runtime.monotonic())
                self._time_next()
            task = self._next()

    def _next(self) -> Task | None:
        with self._lock:
            while not self._closed:
                task = self._schedule.take()
                if task is not None:
                    return task
                self._idle += 1
                self._work.wait()
            return None

    def _time_next(self) -> None:
        """Arrange a look at the clock for the end of the next wait."""
        if self._schedule.due >= self._timer_due:
            return
        if self._timed:
            self._time.notify()
            return
        self._timed = True
        runtime.start_thread(self._clock, "consumer-clock")

    def _clock(self) -> None:
        with self._lock:
            while not self._closed:
                for _ in range(self._schedule.ripen(runtime.monotonic())):
                    self._employ()
                self._timer_due = self._schedule.due
                if self._timer_due == math.inf:
                    self._time.wait()
                else:
                    self._time.wait(max(0.0, self._timer_due - runtime.monotonic()))
