"""What an application gives to a consumer: `handle_message`, or a plain function.

A handler returns when the op is handled. It may raise `Retry`, to be asked again; any
other exception stops the consumer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import psycopg

from consumer.op import Op

Transaction = psycopg.Connection[Any]
"""A connection inside of an open transaction, which the consumer commits."""


class BasicApplication(Protocol):
    """Handles each op at least once."""

    def handle_message(self, op: Op, /) -> object: ...


class IdempotentApplication(Protocol):
    """Handles each op exactly once, as far as it writes through `tx`.

    `tx` stands in a transaction that is not the handler's to end. An error of
    PostgreSQL fails the transaction: who wants to go on after one opens a savepoint,
    `with tx.transaction():`.
    """

    def handle_message(self, tx: Transaction, op: Op, /) -> object: ...


BasicHandler = Callable[[Op], object]
IdempotentHandler = Callable[[Transaction, Op], object]


class _Verdict(Exception):
    def __init__(self, cause: BaseException | str | None = None) -> None:
        super().__init__(cause)
        self.cause = cause


class Retry(_Verdict):
    """Ask again with the same op, a little later; only its partition waits."""


class Fatal(_Verdict):
    """Stop the consumer: this op cannot be handled."""


@dataclass(frozen=True, slots=True)
class BatchHooks:
    """What an application does around the ops that share a transaction.

    `begin_batch(tx, ops)` comes before the first, with all that may follow: to lock in
    one order what they write. `end_batch(tx)` comes after the last that was handled.
    """

    begin: Callable[[Transaction, Sequence[Op]], object]
    end: Callable[[Transaction], object]


def batch_hooks(app: object) -> BatchHooks | None:
    """Return an application's own, of which it has both or none."""
    begin = getattr(app, "begin_batch", None)
    end = getattr(app, "end_batch", None)
    return BatchHooks(begin, end) if callable(begin) and callable(end) else None


def beginning(app: object) -> Callable[[], object]:
    """Return what an application does before its first op: `begin_consuming()`.

    A psycopg.OperationalError of it is waited out, like a database that is away.
    """
    begin = getattr(app, "begin_consuming", None)
    return begin if callable(begin) else lambda: None


def basic_handler(app: BasicApplication | BasicHandler) -> BasicHandler:
    """Return the function to call, of either kind of application."""
    method = getattr(app, "handle_message", app)
    if not callable(method):
        raise TypeError("an application has a method handle_message(op)")
    handler: BasicHandler = method
    return handler


def idempotent_handler(
    app: IdempotentApplication | IdempotentHandler,
) -> IdempotentHandler:
    """Return the function to call, of either kind of application."""
    method = getattr(app, "handle_message", app)
    if not callable(method):
        raise TypeError("an application has a method handle_message(tx, op)")
    handler: IdempotentHandler = method
    return handler
