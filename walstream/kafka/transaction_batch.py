"""Batch of records that one Kafka transaction has, by the source's transactions."""

from walstream.kafka.transaction_plan import PositionBook
from walstream.pipeline.ledger import Counted


class TransactionShare:
    """Records that one Kafka transaction has of one transaction of the source."""

    __slots__ = ("records",)

    def __init__(self) -> None:
        self.records = 0


class TransactionBatch(Counted):
    """One Kafka transaction: `undelivered` are its own records on their way."""

    __slots__ = ("began", "is_sealed", "shares")

    def __init__(self) -> None:
        super().__init__()
        self.began = 0.0  # when its first record came
        self.is_sealed = False  # has it the position?
        self.shares: dict[Counted, TransactionShare] = {}  # in order of the source

    def is_whole(self, book: PositionBook) -> bool:
        """Return whether all of its shares are whole."""
        for counted, share in reversed(self.shares.items()):
            if not book.is_whole(counted, share.records):
                return False
        return True
