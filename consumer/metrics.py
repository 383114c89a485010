"""Counts of a consumer, handed to a function of the application's choice."""

from enum import StrEnum
from typing import Protocol


class Measure(StrEnum):
    HANDLED = "handled"  # ops
    UNROUTED = "unrouted"  # ops among the handled that no route of `on` was for
    SKIPPED = "skipped"  # ops that took effect already, and tombstones
    RETRIED = "retried"  # tries that come again
    POISON = "poison"  # records that are no op
    LOST = "lost"  # offsets that Kafka deleted before they were read (basic consumer)
    BATCH_SECONDS = "batch_seconds"  # of one batch, from its begin to its end


class Metrics(Protocol):
    """Called by the partitions' threads, several at once, with what is to be added."""

    def __call__(
        self, measure: Measure, value: float, topic: str, partition: int, /
    ) -> object: ...


def unmeasured(_measure: Measure, _value: float, _topic: str, _number: int, /) -> None:
    """Count nothing."""
