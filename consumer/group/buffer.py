"""Messages fetched and not handled yet: in order, bounded over all partitions."""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from confluent_kafka import Message

BUDGET: Final = 16 << 20  # bytes, of all partitions of a consumer
HAND: Final = 1 << 20  # bytes that a turn takes
_OVERHEAD: Final = 512  # of a message: the object, its key, its topic's name


def size(messages: Iterable[Message]) -> int:
    """Return about as many bytes as these take."""
    sizes = list(map(len, messages))
    return sum(sizes) + _OVERHEAD * len(sizes)


class Budget:
    """The bytes that the inboxes of one consumer hold together."""

    def __init__(
        self, most: int = BUDGET, drained: Callable[[], object] = lambda: None
    ) -> None:
        self.most = most
        self.held = 0
        self._drained = drained  # called when it falls below a half
        self._lock = threading.Lock()

    @property
    def free(self) -> int:
        return self.most - self.held

    def add(self, count: int) -> None:
        with self._lock:
            before = self.held
            self.held += count
        if count < 0 and self.held * 2 < self.most <= before * 2:
            self._drained()


class Inbox:
    """A partition's messages, put by one thread, taken by another.

    They count until they are released: what is taken is in hand.
    """

    def __init__(self, budget: Budget) -> None:
        self.bytes = 0
        self._budget = budget
        self._messages: deque[Message] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def put(self, messages: Sequence[Message], *, force: bool = False) -> int:
        """Take in what there is room for; give the number.

        A partition may hold as much as is left for the others. So there is always
        something left, and the budget is exceeded by one message at most; `force` takes
        the first one in any case.
        """
        with self._lock:
            if self._closed:
                return len(messages)
            total = size(messages)
            if self.bytes + 2 * total > self._budget.free:
                count, total = self._fitting(messages, force=force)
                messages = messages[:count]
            self._messages.extend(messages)
            self._add(total)
            return len(messages)

    def _fitting(self, messages: Sequence[Message], *, force: bool) -> tuple[int, int]:
        total, free = 0, self._budget.free
        for count, message in enumerate(messages):
            if self.bytes + 2 * total >= free and not (force and count == 0):
                return count, total
            total += len(message) + _OVERHEAD
        return len(messages), total

    def take(self, wanted: int) -> list[Message]:
        """Take so many messages, fewer where they are large."""
        with self._lock:
            waiting = self._messages
            taken = [waiting.popleft() for _ in range(min(wanted, len(waiting)))]
            if size(taken) > HAND:
                count, total = 0, 0
                while count == 0 or total < HAND:
                    total += len(taken[count]) + _OVERHEAD
                    count += 1
                waiting.extendleft(reversed(taken[count:]))
                del taken[count:]
            return taken

    def put_back(self, messages: Sequence[Message]) -> None:
        """Put what was taken and not handled first again."""
        with self._lock:
            if not self._closed:
                self._messages.extendleft(reversed(messages))

    def release(self, messages: Iterable[Message]) -> None:
        """Count what was taken no longer."""
        with self._lock:
            if not self._closed:
                self._add(-size(messages))

    def shed(self, keep: int) -> int | None:
        """Drop from the end what exceeds so many bytes; give the first offset of it."""
        with self._lock:
            dropped: int | None = None
            total = 0
            while self._messages and self.bytes - total > keep:
                message = self._messages.pop()
                total += len(message) + _OVERHEAD
                dropped = message.offset()
            self._add(-total)
            return dropped

    def clear(self) -> None:
        """Drop what is not in hand."""
        with self._lock:
            self._clear()

    def close(self) -> None:
        """Drop everything, and take nothing more: a former lane may live long."""
        with self._lock:
            self._clear()
            self._add(-self.bytes)
            self._closed = True

    @property
    def count(self) -> int:
        return len(self._messages)

    @property
    def empty(self) -> bool:
        return not self._messages

    @property
    def first_offset(self) -> int | None:
        """The offset of what is taken next."""
        with self._lock:
            return self._messages[0].offset() if self._messages else None

    def _clear(self) -> None:
        self._add(-size(self._messages))
        self._messages.clear()

    def _add(self, count: int) -> None:
        if count:
            self.bytes += count
            self._budget.add(count)
