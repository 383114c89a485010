"""Spark jobs: runs chunks, and reports each outcome at once.

Each table is a job (several, where connections are scarcer than Spark's slots), with a
description for Spark's UI. The jobs stand in one queue, a few at a time, so that no
core waits for a table's last chunk. A chunk's outcome comes by an accumulator, which
counts each once; a chunk that fails is tried again by Spark.
"""

import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final, Protocol

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import TaskContext
from pyspark.accumulators import (
    Accumulator,
    AccumulatorParam,
    _accumulatorRegistry,
)
from pyspark.util import InheritableThread

from walstream.errors import Transient, WalstreamError
from walstream.spark.outcome import (
    ChunkDone,
    ChunkFailed,
    ChunkPostponed,
    ChunkRefused,
    refusal,
)
from walstream.spark.session import SparkRuntime
from walstream.telemetry import runtime

Outcome = ChunkDone | ChunkPostponed
"""What is told of a chunk."""

Task = Callable[[Any], Outcome | ChunkRefused]
"""Does one chunk, of the kind that it is made for.

Its `of`, where it has one, gives what chunks of one table need of it: less to pickle.
"""

_LANES: Final = 4  # jobs at a time
_LOOK_EVERY_S: Final = 0.02
_CANCEL_WAIT_S: Final = 10.0
# of a job's failure, as Spark writes it
_SAID: Final = re.compile(r"ChunkFailed: (chunk \d+: .*)")
_LOST: Final = re.compile(
    r"Task (\d+) in stage .*?: (?:[\w.]+(?:Exception|Error): )?(.*)"
)
_ENDED: Final = re.compile(
    r"cancelled because|SparkContext was shut down|stopped SparkContext|Master removed"
)
_NO_MODULE: Final = re.compile(r"ModuleNotFoundError: (No module named .*)")


class Runnable(Protocol):
    """A chunk, as it is scheduled; picklable, and `str` says where it reads."""

    @property
    def number(self) -> int: ...

    @property
    def title(self) -> str:
        """Return the title in Spark's UI; chunks of one title are a job."""


class _Outcomes(AccumulatorParam[list[Any]]):
    """Collects outcomes from the tasks."""

    def zero(self, _value: list[Any]) -> list[Any]:
        return []

    def addInPlace(self, value1: list[Any], value2: list[Any]) -> list[Any]:  # noqa: N802 - pyspark's name
        value1 += value2
        return value1


def run(
    spark: SparkRuntime,
    chunks: Sequence[Runnable],
    task: Task,
    on_done: Callable[[Any], None],
    on_turn: Callable[[], None] = lambda: None,
) -> None:
    """Run all chunks, in their order; call back from this thread, with each Outcome.

    Raises ChunkFailed when one failed as often as Spark tries, what the task says no
    retry will cure, Transient when Spark itself is gone. What a callback raises ends
    the tasks that run, and is raised again.
    """
    if not chunks:
        return
    try:
        _Run(spark, chunks, task).follow(on_done, on_turn)
    except Py4JError:
        raise _gone() from None


class _Run:
    """One call of `run`."""

    def __init__(
        self, spark: SparkRuntime, chunks: Sequence[Runnable], task: Task
    ) -> None:
        self._spark = spark
        self._task = task
        self._numbers = {chunk.number for chunk in chunks}
        self._slices: queue.SimpleQueue[list[Runnable]] = queue.SimpleQueue()
        lanes = min(_LANES, spark.connections)
        unlimited = spark.slots is not None and spark.slots <= spark.connections
        most = len(chunks) if unlimited else max(1, spark.connections // lanes)
        for part in _slices(chunks, most):
            self._slices.put(part)
        self._group = f"walstream-{id(self):x}-{runtime.time_ns():x}"
        self._outcomes: Accumulator[list[Any]] = spark.context.accumulator(
            [], _Outcomes()
        )
        self._stopped = threading.Event()
        self._failed: BaseException | None = None
        lanes = min(lanes, self._slices.qsize())
        self._lanes = [InheritableThread(self._work, daemon=True) for _ in range(lanes)]

    def follow(
        self, on_done: Callable[[Any], None], on_turn: Callable[[], None]
    ) -> None:
        seen: set[int] = set()
        for lane in self._lanes:
            lane.start()
        try:
            while True:
                running = any(lane.is_alive() for lane in self._lanes)
                for done in self._take(seen):
                    on_done(done)
                on_turn()
                if self._failed is not None:
                    raise self._failed
                if not running:
                    break
                for lane in self._lanes:
                    lane.join(_LOOK_EVERY_S / len(self._lanes))
        finally:
            self._end()
            _accumulatorRegistry.pop(self._outcomes.aid, None)
        if missing := self._numbers - seen:
            raise Transient(
                "Spark did not report the outcome of chunks "
                f"{', '.join(map(str, sorted(missing)))}"
            )

    def _take(self, seen: set[int]) -> Iterator[Outcome]:
        """Yield what was not seen yet; a refusal is an error at once."""
        for outcome in self._outcomes.value[len(seen) :]:
            seen.add(outcome.number)
            if isinstance(outcome, ChunkRefused):
                raise refusal(outcome)
            yield outcome

    def _work(self) -> None:
        """Run one slice after the other, as one of the lanes."""
        while not self._stopped.is_set():
            try:
                part = self._slices.get_nowait()
            except queue.Empty:
                return
            try:
                self._run_job(part)
            except Exception as error:  # noqa: BLE001 - whatever Spark raises
                if not self._stopped.is_set():
                    self._failed = _failure(error, part)
                    self._stopped.set()
                return

    def _run_job(self, part: Sequence[Runnable]) -> None:
        context = self._spark.context
        context.setJobGroup(
            self._group, f"walstream: {part[0].title}", interruptOnCancel=False
        )
        context.setLocalProperty("spark.scheduler.pool", self._spark.pool)
        narrowed = getattr(self._task, "of", None)
        task = narrowed(part[0]) if narrowed else self._task
        outcomes = self._outcomes

        def each(mine: Iterable[Runnable]) -> Iterator[int]:
            context = TaskContext.get()
            tried = context is not None and context.attemptNumber() > 0
            for chunk in mine:
                if tried and not getattr(chunk, "repeats", True):
                    error = Transient(f"{chunk}: the worker that read it died")
                    outcomes.add([ChunkPostponed(chunk.number, error, died=True)])
                    continue
                try:
                    outcomes.add([task(chunk)])
                except ChunkFailed:
                    raise
                except Exception as error:
                    name = type(error).__name__
                    raise ChunkFailed(f"{chunk}: {name}: {error}") from error
            return iter(())

        # pickled one by one: a partition is a chunk
        context.parallelize(part, len(part)).mapPartitions(each).count()

    def _end(self) -> None:
        """Let nothing of this run go on: a task that is cancelled is waited for."""
        self._stopped.set()
        if not any(lane.is_alive() for lane in self._lanes):
            return
        try:
            self._spark.context.cancelJobGroup(self._group)
        except (Py4JError, OSError):
            return  # no JVM, no tasks
        for lane in self._lanes:
            lane.join(_CANCEL_WAIT_S)


def _slices(chunks: Sequence[Runnable], most: int) -> Iterator[list[Runnable]]:
    """Cut the chunks into jobs: of one table each, and of so many chunks at most."""
    for _, group in groupby(chunks, lambda chunk: chunk.title):
        table = list(group)
        for start in range(0, len(table), most):
            yield table[start : start + most]


def _gone() -> Transient:
    return Transient(
        "Spark is gone: its Java process ended",
        hint="it may have been killed, or out of memory; finished chunks stay finished",
    )


def _failure(error: Exception, part: Sequence[Runnable]) -> WalstreamError:
    """Return why a job failed: the chunk, and the cause in one line."""
    if isinstance(error, Py4JJavaError):
        return _said(str(error.java_exception.getMessage()), part)
    if isinstance(error, Py4JError | OSError):
        return _gone()
    return ChunkFailed(f"Spark: {type(error).__name__}: {error}")


def _said(text: str, part: Sequence[Runnable]) -> WalstreamError:
    """Read what Spark's scheduler says."""
    if found := _NO_MODULE.search(text):
        return ChunkFailed(
            f"Spark's Python: {found[1]}",
            hint="install walstream there, or name its Python in spark.pyspark.python",
        )
    if _ENDED.search(text):
        return _gone()
    if found := _SAID.search(text):
        return ChunkFailed(found[1])
    found = _LOST.search(text)
    if found and int(found[1]) < len(part):
        return ChunkFailed(f"{part[int(found[1])]}: {found[2]}")
    return Transient(f"Spark: {text.splitlines()[0]}")
