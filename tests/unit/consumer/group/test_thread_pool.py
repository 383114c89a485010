"""Threads that are lent."""

import threading
from collections.abc import Callable

from consumer.group.schedule import AGAIN, ON_CALL, After
from consumer.group.thread_pool import Pool
from tests.support.deadline import wait_until


class Turns:
    """A task that does what it is told, turn by turn."""

    def __init__(self, *turns: Callable[[], After | None]) -> None:
        self._turns = list(turns)
        self.count = 0

    def turn(self) -> After | None:
        self.count += 1
        return self._turns.pop(0)() if self._turns else ON_CALL


def test_no_more_threads_than_allowed_are_started() -> None:
    pool, go, names = Pool(3), threading.Event(), set[str]()

    def hold() -> After | None:
        names.add(threading.current_thread().name)
        go.wait(20)
        return AGAIN

    tasks = [Turns(hold) for _ in range(20)]
    for task in tasks:
        pool.add(task)
    wait_until(lambda: len(names) == 3, 10, "three are busy")
    assert sum(task.count for task in tasks) == 3
    go.set()
    wait_until(lambda: all(task.count >= 2 for task in tasks), 10, "all had turns")
    assert len(names) == 3
    pool.close()


def test_a_wait_holds_no_thread_and_ends_in_time() -> None:
    pool = Pool(1)
    waits, works = Turns(lambda: After(0.2, deaf=True)), Turns()
    pool.add(waits)
    pool.add(works)
    wait_until(lambda: works.count, 10, "the other one has its turn")
    wait_until(lambda: waits.count == 2, 10, "its time is up")
    shorter = Turns(lambda: After(1000), lambda: After(0.01))
    pool.add(shorter)
    wait_until(lambda: shorter.count == 1, 10, "it waits for long")
    pool.call(shorter)
    wait_until(lambda: shorter.count == 3, 10, "it waited for shorter")
    pool.close()


def test_all_that_are_called_at_once_have_a_thread() -> None:
    pool, meet = Pool(), threading.Barrier(5, timeout=20)

    def together() -> After | None:
        meet.wait()
        return ON_CALL

    tasks = [Turns(lambda: ON_CALL, together, together) for _ in range(5)]
    for task in tasks:
        pool.add(task)

    def had(turns: int) -> bool:
        return all(task.count == turns for task in tasks)

    wait_until(lambda: had(1), 10, "they rest")
    for task in tasks:
        pool.call(task)
    wait_until(lambda: had(2), 10, "all met")
    for task in tasks:
        pool.call(task)
    wait_until(lambda: had(3), 10, "all met again")
    pool.close()
