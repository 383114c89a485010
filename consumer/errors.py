"""Errors that stop a consumer, and their repair.

An error names the topic, the partition, the offset, and of an op its table and
position: never a row's value. What a handler raised is its cause.
"""

from typing import Self

from walstream.errors import (
    HistoryError,
    PermissionLacking,
    Transient,
    WalstreamError,
)


class ConsumerStopped(WalstreamError):
    """Base of all: going on would break the promise, or was forbidden."""

    topic: str = ""
    partition: int = -1
    offset: int = -1
    table: str = ""  # schema.table
    lsn: int | None = None
    seq_id: int | None = None

    def at(self, topic: str, partition: int, offset: int = -1) -> Self:
        """Return where in Kafka it happened."""
        self.topic, self.partition, self.offset = topic, partition, offset
        return self

    def on(self, table: str, lsn: int, seq_id: int) -> Self:
        """Return which op it was."""
        self.table, self.lsn, self.seq_id = table, lsn, seq_id
        return self


class HandlerFailed(ConsumerStopped):
    """The handler raised Fatal, or what it did not mean to raise."""


class TransactionEnded(ConsumerStopped):
    """The handler ended the transaction that it was lent, or left it failed."""


class PoisonRecord(ConsumerStopped):
    """A record that is not an op."""


class ForeignSource(ConsumerStopped, HistoryError):
    """The records come from another database, or from another history of it."""


class TopicReplaced(ConsumerStopped, HistoryError):
    """The topic is not the one that was read, or lacks what was not yet read."""


class BarrierTimeout(ConsumerStopped):
    """A TRUNCATE waited too long for other partitions to reach it."""


class Incomplete(ConsumerStopped, HistoryError):
    """Records of a transaction are gone: it cannot be handled whole."""


class SchemasRefused(ConsumerStopped, PermissionLacking):
    """The schema registry does not let this user in, or read."""


class SchemasAway(Transient):
    """The schema registry does not answer: a partition waits, and asks again."""

    def __init__(self, message: str, wait_s: float = 1.0) -> None:
        super().__init__(message)
        self.wait_s = wait_s
