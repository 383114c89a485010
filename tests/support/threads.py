"""Threads that run beside a test, for as long as a block lasts."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tests.support.deadline import wait_until


class Threads:
    """Runs each of `works` in a thread of its own, until the block is left.

    A work ends when `leaving` is set. What one raises fails the block.
    """

    def __init__(self, *works: Callable[[], object]) -> None:
        self.leaving = threading.Event()
        self.failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(work,), daemon=True)
            for work in works
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.leaving.set()
        for thread in self._threads:
            thread.join()
        if error is None:
            assert not self.failures, self.failures

    def _run(self, work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the test shows it
            self.failures.append(error)


class Writers(Threads):
    """Threads that write, and count the transactions that they ended."""

    def __init__(self, *works: Callable[[], object]) -> None:
        super().__init__(*works)
        self.transactions = 0

    def wait_for_more(self, transactions: int = 50, timeout_s: float = 60) -> None:
        """Wait until so many further transactions were ended."""
        wanted = self.transactions + transactions
        wait_until(
            lambda: self.failures or self.transactions >= wanted,
            timeout_s,
            "the load goes on",
        )
        assert not self.failures, self.failures
