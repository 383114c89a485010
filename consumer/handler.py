"""Interfaces of applications: `handle_message`, or a plain function.

A handler returns when the op is handled. It may raise `Retry`, to be asked again; any
other exception stops the consumer. An application with `handle_batch` gets many ops of
one partition at once.
"""

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import psycopg
from psycopg import IsolationLevel

from consumer.op import Op

_NO_YIELD: Final = "write it without `yield`"

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


class BasicBatchApplication(Protocol):
    """Handles each op at least once, many of one partition at once, in order.

    A batch that fails comes again in halves, until the op that fails is alone.
    """

    def handle_batch(self, ops: Sequence[Op], /) -> object: ...


class IdempotentBatchApplication(Protocol):
    """Handles each op exactly once, many of one partition in one transaction.

    They are in order, and what is written through `tx` commits with the position of the
    last one. A batch that fails is rolled back, and comes again in halves, until the op
    that fails is alone. A TRUNCATE is a batch of its own.
    """

    def handle_batch(self, tx: Transaction, ops: Sequence[Op], /) -> object: ...


BasicHandler = Callable[[Op], object]
BasicBatchHandler = Callable[[Sequence[Op]], object]
IdempotentBatchHandler = Callable[[Transaction, Sequence[Op]], object]
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
    """The calls of an application around the ops that share a transaction.

    `begin_batch(tx, ops)` comes before the first, with all that may follow: to lock in
    one order what they write. `end_batch(tx)` comes after the last that was handled.
    """

    begin: Callable[[Transaction, Sequence[Op]], object]
    end: Callable[[Transaction], object]


def batch_hooks(app: object) -> BatchHooks | None:
    """Return an application's own, of which it has both or none."""
    begin = getattr(app, "begin_batch", None)
    end = getattr(app, "end_batch", None)
    if not callable(begin) or not callable(end):
        return None
    refuse_coroutine(begin)
    refuse_coroutine(end)
    return BatchHooks(begin, end)


def beginning(app: object) -> Callable[[], object]:
    """Return what an application does before its first op: `begin_consuming()`.

    A psycopg.OperationalError of it is waited out, like a database that is away.
    """
    begin = getattr(app, "begin_consuming", None)
    if not callable(begin):
        return lambda: None
    called: Callable[[], object] = begin
    refuse_coroutine(called)
    return called


def isolation_of(app: object) -> IsolationLevel | None:
    """Return the level that an application's transactions need; None: any."""
    level = getattr(app, "isolation_level", None)
    return level if isinstance(level, IsolationLevel) else None


def basic_handler(
    app: BasicApplication | BasicBatchApplication | BasicHandler,
) -> BasicHandler:
    """Return the function that handles an op; it may be a coroutine function."""
    batch = basic_batch_handler(app)
    if batch is not None:
        return lambda op: batch((op,))
    method = getattr(app, "handle_message", app)
    if not callable(method):
        raise TypeError(
            "an application has a method handle_message(op) or handle_batch(ops)"
        )
    handler: BasicHandler = method
    refuse_generator(handler)
    return handler


def basic_batch_handler(app: object) -> BasicBatchHandler | None:
    """Return the application's `handle_batch(ops)`, if it has one."""
    method = getattr(app, "handle_batch", None)
    if not callable(method):
        return None
    handler: BasicBatchHandler = method
    refuse_generator(handler)
    return handler


def idempotent_handler(
    app: IdempotentApplication | IdempotentBatchApplication | IdempotentHandler,
) -> IdempotentHandler:
    """Return the function that handles an op.

    Raise TypeError for a coroutine function: `tx` blocks its thread.
    """
    batch = idempotent_batch_handler(app)
    if batch is not None:
        return lambda tx, op: batch(tx, (op,))
    method = getattr(app, "handle_message", app)
    if not callable(method):
        raise TypeError(
            "an application has a method handle_message(tx, op) or"
            " handle_batch(tx, ops)"
        )
    handler: IdempotentHandler = method
    refuse_coroutine(handler)
    return handler


def idempotent_batch_handler(app: object) -> IdempotentBatchHandler | None:
    """Return the application's `handle_batch(tx, ops)`, if it has one."""
    method = getattr(app, "handle_batch", None)
    if not callable(method):
        return None
    handler: IdempotentBatchHandler = method
    refuse_coroutine(handler)
    return handler


def refuse_coroutine(handler: Callable[..., object]) -> None:
    """Raise TypeError for a function whose body an ordinary call does not run."""
    called = getattr(handler, "__call__", None)  # noqa: B004 - an object's own method
    if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(called):
        raise TypeError(
            "the idempotent consumer takes no coroutine function: its transaction"
            " blocks the thread; write `def`, or use BasicConsumer"
        )
    refuse_generator(handler)


def refuse_generator(handler: Callable[..., object]) -> None:
    """Raise TypeError for a function with `yield`, whose body a call does not run."""
    for function in (handler, getattr(handler, "__call__", None)):  # noqa: B004
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(
            function
        ):
            raise TypeError(f"a call of a generator function does nothing: {_NO_YIELD}")


def generated(returned: object) -> str | None:
    """Return why a handler that returned a generator did not do its work."""
    if inspect.isgenerator(returned) or inspect.isasyncgen(returned):
        return f"it returned a generator, which is never run: {_NO_YIELD}"
    return None


def unfinished(returned: object) -> str | None:
    """Return why a handler that returned this did not do its work; None: it did."""
    if not inspect.isawaitable(returned):
        return generated(returned)
    if inspect.iscoroutine(returned):
        returned.close()  # or Python warns that nobody awaited it
    return (
        f"it returned a {type(returned).__name__}, which is never awaited: do the work"
        " before it returns, or use BasicConsumer"
    )


def finished(name: str, returned: object) -> None:
    """Raise TypeError for a method of an application that only returned its work."""
    reason = unfinished(returned)
    if reason is not None:
        raise TypeError(f"{name}: {reason}")


def check_batch(app: object, batch: int, linger: float) -> None:
    """Raise ValueError for a size or a wait that has no meaning."""
    if batch < 1:
        raise ValueError("batch must be at least 1")
    if linger < 0:
        raise ValueError("linger must be a number of seconds, 0 or more")
    if linger and not callable(getattr(app, "handle_batch", None)):
        raise ValueError("linger needs an application with handle_batch")


def check_pipeline(app: object, *, pipeline: bool) -> None:
    """Raise ValueError where a pipeline cannot be, or is of no use."""
    if pipeline and callable(getattr(app, "handle_batch", None)):
        raise ValueError(
            "pipeline is for handle_message: in handle_batch write"
            " `with tx.pipeline():`, or executemany"
        )
    if pipeline and not psycopg.Pipeline.is_supported():
        raise ValueError("pipeline needs libpq 14 or newer")
