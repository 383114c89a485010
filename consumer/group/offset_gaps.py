"""Offsets that never came: compacted, of a transaction, or deleted before their time.

Small gaps are usual in some topics, and each question to the brokers costs: so the
oldest gap is kept until it is time to ask again.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final

from confluent_kafka import Message

from walstream.telemetry import runtime

_ASK_INTERVAL_S: Final = 1.0


class Gaps:
    """The oldest gap of a partition that was not yet asked about."""

    def __init__(self, clock: Callable[[], float] = runtime.monotonic) -> None:
        self._clock = clock
        self._oldest: int | None = None  # the first offset that did not come
        self._next_ask = clock()

    def see(self, messages: Sequence[Message], expected: int | None) -> None:
        """Note where these do not go on at the expected offset, or have holes."""
        if self._oldest is not None or not messages:
            return
        first, last = _offset(messages[0]), _offset(messages[-1])
        if expected is not None and first > expected:
            self._oldest = expected
        elif last - first != len(messages) - 1:
            offsets = pairwise(map(_offset, messages))
            self._oldest = next((a + 1 for a, b in offsets if b > a + 1), None)

    @property
    def pending(self) -> bool:
        """Whether `due` will give one."""
        return self._oldest is not None

    def due(self) -> int | None:
        """Return the offset that Kafka must still have, when it is time to ask."""
        if self._oldest is None or self._clock() < self._next_ask:
            return None
        oldest, self._oldest = self._oldest, None
        self._next_ask = self._clock() + _ASK_INTERVAL_S
        return oldest


def _offset(message: Message) -> int:
    return message.offset() or 0
