"""Plan of a producer's Kafka transactions: their names, times, and what they hold."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from walstream.config.librdkafka import ClientProperties
from walstream.kafka.start_report import StartReport
from walstream.lsn import Lsn
from walstream.pipeline.ledger import Counted


@dataclass(frozen=True, slots=True)
class TransactionPlan:
    """Settings of one producer's Kafka transactions."""

    id: str  # transactional.id
    others: tuple[str, ...]  # ids whose producers are to write no more
    topic: str  # of positions
    interval_s: float
    timeout_ms: int  # transaction.timeout.ms
    shared: str = ""  # what the position is told as; "": as the id

    @property
    def key(self) -> bytes:
        """Key of the position's record."""
        return (self.shared or self.id).encode()

    @property
    def properties(self) -> ClientProperties:
        """What a producer needs for its transactions."""
        return {
            "transactional.id": self.id,
            "transaction.timeout.ms": self.timeout_ms,
            # of a record in a transaction: no longer than that lasts
            "message.timeout.ms": self.timeout_ms,
        }


class PositionBook(Protocol):
    """Content of a producer's transactions, and the position that they tell."""

    @property
    def plan(self) -> TransactionPlan: ...

    @property
    def repeats(self) -> bool:
        """Return whether it may be given ops again that were sent before."""

    def covered(self, value: bytes | None, /) -> tuple[Lsn, int]:
        """Return the name of an op: all up to it is delivered; (0, -1): nobody knows.

        `value` is the last position that was committed.
        """

    def is_alone(self, topic: str, /) -> bool:
        """Return whether no other sink writes to a topic."""

    def is_delivered(self, value: bytes, /) -> bool:
        """Return whether all that a position covers was delivered, whoever says so."""

    def open(self, value: bytes | None, /) -> StartReport:
        """Take the last position in Kafka, before anything is sent."""

    def is_whole(self, counted: Counted, records: int, /) -> bool:
        """Return whether so many records are all that it has, or will have."""

    def position(self, sent: Iterable[Counted], /, *, whole: bool) -> bytes | None:
        """Return the position of a transaction that has these; None: as before."""
