"""Chunks in this process, without Spark: for what is small, and needs no Java.

Outcomes, tries and promises are those of `jobs`: a few chunks at a time, in their
order, each outcome reported once; a chunk that fails is tried again, unless it would be
read in another order.
"""

import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

from walstream.errors import Transient
from walstream.spark.outcome import (
    ChunkDone,
    ChunkFailed,
    ChunkPostponed,
    ChunkRefused,
    refusal,
)
from walstream.telemetry import runtime

_LANES: Final = 4  # chunks at a time: each waits for its servers most of its time
_TRIES: Final = 4  # as Spark's default here, local[*,4]
_LOOK_EVERY_S: Final = 0.05
_END_S: Final = 10.0

_Heard = ChunkDone | ChunkPostponed | ChunkRefused | BaseException


class InProcessRun:
    """One order's chunks. Whoever made it calls `run`, and `wait` in any case."""

    def __init__(self, chunks: Sequence[Any], at_once: int) -> None:
        self._chunks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        for chunk in chunks:
            self._chunks.put(chunk)
        self._heard: queue.SimpleQueue[_Heard] = queue.SimpleQueue()
        self._lanes = max(1, min(_LANES, at_once, len(chunks)))
        self._threads: list[runtime.StartedThread] = []
        self._stopped = threading.Event()

    def run(
        self,
        task: Callable[[Any], Any],
        on_done: Callable[[Any], None],
        on_turn: Callable[[], None],
    ) -> None:
        """Run all chunks; call back from this thread, with each outcome.

        Raises ChunkFailed when one failed as often as it is tried, and what the task
        says no retry will cure. What a callback raises ends the run, too.
        """
        self._threads = [
            runtime.start_thread(self._work, "chunks", task) for _ in range(self._lanes)
        ]
        try:
            while self._alive() or not self._heard.empty():
                on_turn()
                self._hear(on_done)
        finally:
            self._stopped.set()

    def wait(self) -> None:
        """Wait until no chunk is being read; its leash has ended that before."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(_END_S)

    def _alive(self) -> bool:
        return any(thread.is_alive() for thread in self._threads)

    def _hear(self, on_done: Callable[[Any], None]) -> None:
        try:
            heard = self._heard.get(timeout=_LOOK_EVERY_S)
        except queue.Empty:
            return
        if isinstance(heard, BaseException):
            raise heard
        if isinstance(heard, ChunkRefused):
            raise refusal(heard)
        on_done(heard)

    def _work(self, task: Callable[[Any], Any]) -> None:
        while not self._stopped.is_set():
            try:
                chunk = self._chunks.get_nowait()
            except queue.Empty:
                return
            try:
                self._heard.put(self._one(task, chunk))
            except BaseException as error:  # noqa: BLE001 - raised by who listens
                self._heard.put(error)
                return

    def _one(self, task: Callable[[Any], Any], chunk: Any) -> _Heard:
        """Do one chunk; try again what is read in the same order each time."""
        narrowed = getattr(task, "of", None)
        mine = narrowed(chunk) if narrowed else task
        for left in reversed(range(_TRIES)):
            try:
                done: _Heard = mine(chunk)
            except ChunkFailed as error:
                if not getattr(chunk, "repeats", True):
                    postponed = Transient(str(error.args[0]), hint=error.hint)
                    return ChunkPostponed(chunk.number, postponed, died=True)
                if not left or self._stopped.is_set():
                    raise
            else:
                return done
        raise AssertionError  # the last try returns or raises
