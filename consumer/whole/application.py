"""Interface of applications that take whole transactions."""

from collections.abc import Callable
from typing import Protocol

from consumer.handler import Transaction, refuse_coroutine
from consumer.whole.transaction import WholeTransaction


class TransactionApplication(Protocol):
    """Handles each transaction of the source exactly once, as far as `tx` writes.

    `tx` stands in a transaction that is not the handler's to end: the consumer commits
    it, with the position.
    """

    def handle_transaction(
        self, tx: Transaction, whole: WholeTransaction, /
    ) -> object: ...


TransactionHandler = Callable[[Transaction, WholeTransaction], object]


def transaction_handler(
    app: TransactionApplication | TransactionHandler,
) -> TransactionHandler:
    """Return the function that handles a transaction; raise TypeError for another."""
    method = getattr(app, "handle_transaction", app)
    if not callable(method):
        raise TypeError("an application has a method handle_transaction(tx, whole)")
    handler: TransactionHandler = method
    refuse_coroutine(handler)
    return handler
