"""Who asks the host is driven by another as it is by the machine."""

import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any

import pytest

from tests.support.runtime import altered
from walstream.kafka.freeze_clock import process_pulse
from walstream.pipeline.backoff import Backoff
from walstream.pipeline.checkpoint import Checkpointer, StartPoint, StoredBeside
from walstream.pipeline.ports import Position
from walstream.sources.sql.gap_clock import Times
from walstream.telemetry import runtime
from walstream.telemetry.throttle import Throttle
from walstream.testing import MemorySource, MemoryStore


def test_the_machine_is_asked_where_nobody_stands_in_for_it() -> None:
    for mine, real in [
        (runtime.monotonic, time.monotonic),
        (runtime.perf_counter, time.perf_counter),
        (runtime.time, time.time),
        (runtime.time_ns, time.time_ns),
    ]:
        before, found, after = real(), mine(), real()
        assert before <= found <= after
    assert runtime.since_boot() > 0
    assert 1.0 <= runtime.uniform(1, 2) <= 2.0
    assert runtime.randrange(3) in {0, 1, 2}
    assert len({runtime.token_hex(8) for _ in range(9)}) == 9
    began = time.monotonic()
    runtime.sleep(0.01)
    assert time.monotonic() - began >= 0.01


def test_what_is_asked_for_is_the_very_function_of_the_library() -> None:
    """A row pays for it what it paid before."""
    assert runtime.current().monotonic is time.monotonic
    assert runtime.current().perf_counter is time.perf_counter
    assert runtime.current().time is time.time


def test_a_thread_has_its_name_and_ends_with_the_process() -> None:
    found: list[object] = []

    def run(*arguments: int) -> None:
        found.extend([threading.current_thread().name, arguments])
        found.append(threading.current_thread().daemon)

    thread = runtime.start_thread(run, "beside", 1, 2)
    thread.join(10)
    assert not thread.is_alive()
    assert found == ["beside", (1, 2), True]


def test_a_pool_runs_tasks_in_threads_of_its_name() -> None:
    with runtime.thread_pool(1, "tasks") as threads:
        name = threads.submit(lambda: threading.current_thread().name).result(10)
    assert name.startswith("tasks")


def test_the_one_before_is_back_after_an_error() -> None:
    def fail() -> None:
        raise KeyError(runtime.monotonic())

    machine = runtime.current()
    with altered(monotonic=lambda: 1.0):
        with pytest.raises(KeyError, match=r"^2"), altered(monotonic=lambda: 2.0):
            fail()
        assert runtime.monotonic() == 1.0
    assert runtime.current() is machine


def test_waits_are_the_same_for_the_same_seed() -> None:
    def waits(seed: int) -> list[float]:
        drawn = random.Random(seed)  # noqa: S311 - no secret
        with altered(uniform=drawn.uniform):
            backoff = Backoff()
            return [backoff.next() for _ in range(8)]

    assert waits(7) == waits(7) != waits(8)


def test_a_default_that_was_taken_at_import_follows() -> None:
    now = [100.0]
    with altered(monotonic=lambda: now[0], since_boot=lambda: 7.0):
        throttle = Throttle(60.0)
        assert throttle.is_due("a")
        now[0] += 59
        assert not throttle.is_due("a")
        now[0] += 2
        assert throttle.is_due("a")
        assert Times().since_boot() == 7.0


def test_who_needs_a_thread_is_given_one_of_the_runtime() -> None:
    """It may run when the host thinks fit: here, when its end is awaited."""
    started: list[str] = []

    class Later(Executor):
        def __init__(self, _most: int, thread_name_prefix: str) -> None:
            started.append(thread_name_prefix)
            self._tasks: list[Callable[[], object]] = []

        def submit(self, task: Callable[..., Any], /, *given: Any) -> Future[Any]:  # type: ignore[override]
            self._tasks.append(partial(task, *given))
            return Future()

        def shutdown(self, *_: object, **__: object) -> None:
            for task in self._tasks:
                task()

    positions, before = MemoryStore(), threading.active_count()
    start = Position(7, 1, 1, "d", "s")
    with altered(thread_pool=Later):
        kept = Checkpointer(
            StartPoint(start),
            positions,
            MemorySource([]),
            lambda: None,
            StoredBeside(),
        )
        kept.hurry()
        kept.advance(9, 9)
        assert (started, threading.active_count()) == (["positions"], before)
        assert positions.position() is None
        kept.close()
    stored = positions.position()
    assert stored is not None
    assert stored.resume == 9


def test_each_runtime_has_a_pulse_of_its_own() -> None:
    beats: list[Callable[..., object]] = []
    with altered(
        start_thread=lambda target, _name: beats.append(target), time=lambda: 3.0
    ):
        pulse = process_pulse()
        assert process_pulse() is pulse
        assert beats == [pulse.go_on]
        pulse.beat()
    assert pulse.last_ms == 3000
    assert process_pulse() is not pulse
