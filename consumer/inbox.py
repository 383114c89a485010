"""What was fetched of a partition and not handled yet: bounded, in order.

The bound is the fetcher's to keep: it asks `full` and `drained`, and pauses.
"""

import threading
from collections import deque
from typing import Final

from confluent_kafka import Message

_FULL_RECORDS: Final = 10_000
_FULL_BYTES: Final = 16 << 20


class Inbox:
    """Chunks of a partition's messages, put by one thread, taken by another."""

    def __init__(self) -> None:
        self._chunks: deque[tuple[list[Message], int]] = deque()
        self._records = 0
        self._bytes = 0
        self._changed = threading.Condition()
        self._closed = False

    def put(self, messages: list[Message]) -> None:
        size = sum(map(len, messages))
        with self._changed:
            if self._closed:
                return
            self._chunks.append((messages, size))
            self._records += len(messages)
            self._bytes += size
            self._changed.notify()

    def take(self, wanted: int, timeout_s: float) -> list[Message]:
        """Wait for a chunk; take more while fewer records than wanted are taken."""
        with self._changed:
            if not self._chunks and not self._closed:
                self._changed.wait(timeout_s)
            taken: list[Message] = []
            while self._chunks and (not taken or len(taken) < wanted):
                messages, size = self._chunks.popleft()
                self._records -= len(messages)
                self._bytes -= size
                if taken:
                    taken.extend(messages)
                else:
                    taken = messages
            return taken

    def clear(self) -> None:
        with self._changed:
            self._clear()

    def _clear(self) -> None:
        self._chunks.clear()
        self._records = self._bytes = 0

    def close(self) -> None:
        """Let nobody wait any longer, and keep nothing: a former lane may live long."""
        with self._changed:
            self._closed = True
            self._clear()
            self._changed.notify()

    @property
    def full(self) -> bool:
        return self._records >= _FULL_RECORDS or self._bytes >= _FULL_BYTES

    @property
    def drained(self) -> bool:
        """Less than half full: time to fetch more."""
        return self._records < _FULL_RECORDS // 2 and self._bytes < _FULL_BYTES // 2

    @property
    def empty(self) -> bool:
        return not self._chunks
