"""The end of a transaction of which a sink holds ops: heard behind the last of them.

Its commit may have been read before, or come while others are held.
"""

from collections.abc import Callable

from walstream.lsn import Lsn
from walstream.pipeline.ledger import Transaction


class HeldEnd:
    """Listeners for one transaction's end: of the first one that is held."""

    def __init__(self) -> None:
        self._at_end: tuple[Callable[[Transaction, Lsn], None], ...] = ()

    def take(self, transaction: Transaction) -> None:
        """Keep its commit from being heard: ops of it are held."""
        self._at_end += transaction.at_end
        transaction.at_end = ()

    def let_go(self, transaction: Transaction) -> None:
        """Let it be heard, now if it was read: no op of it is held."""
        self.take(transaction)
        at_end, self._at_end = self._at_end, ()
        if transaction.end_lsn is None:
            transaction.at_end = at_end
            return
        for hear in at_end:
            hear(transaction, transaction.end_lsn)
