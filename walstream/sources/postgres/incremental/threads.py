"""The threads beside the loop: some that ask the database, one that writes."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from walstream.telemetry import runtime

Submit = Callable[..., Future[Any]]
"""Run this function with these arguments in a thread."""


class Threads:
    """Both kinds, for one stream; `wake` is called when something is done."""

    def __init__(self, wake: Callable[[], None]) -> None:
        self._wake = wake
        self._readers = runtime.thread_pool(2, thread_name_prefix="backfill")
        self._writer = runtime.thread_pool(1, thread_name_prefix="backfill-progress")

    def read(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._submit(self._readers, task, arguments)

    def write(self, task: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._submit(self._writer, task, arguments)

    def _submit(
        self,
        pool: Executor,
        task: Callable[..., Any],
        arguments: tuple[Any, ...],
    ) -> Future[Any]:
        future = pool.submit(task, *arguments)
        future.add_done_callback(lambda _: self._wake())
        return future

    def close(self) -> None:
        """End them: a reader's answer is awaited no more, what is written is."""
        self._readers.shutdown(wait=False, cancel_futures=True)
        self._writer.shutdown(wait=True)
