"""Handlers by table and kind: `@consumer.on("shop.orders", Kind.INSERT)`."""

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, TypeVar, overload

from consumer.handler import Transaction, refuse_coroutine, refuse_generator
from consumer.metrics import Measure, Metrics, unmeasured
from consumer.name_pattern import matcher
from consumer.op import Op
from consumer.values import Values
from walstream.op import Kind

T = TypeVar("T")
BasicRoute = TypeVar("BasicRoute", bound=Callable[[Op], object])
IdempotentRoute = TypeVar("IdempotentRoute", bound=Callable[[Transaction, Op], object])
BasicRowHandler = Callable[[T, Op], object]
IdempotentRowHandler = Callable[[Transaction, T, Op], object]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Route:
    matches: Callable[[str], bool]
    kinds: frozenset[Kind]
    handler: Callable[..., object]


class RouteTable:
    """The routes in the order in which they were added: the first that fits counts."""

    def __init__(self, *, closed: bool = False) -> None:
        self.metrics: Metrics = unmeasured
        self._closed = closed
        self._routes: list[_Route] = []
        self._found: dict[tuple[str, str, Kind], Callable[..., object] | None] = {}
        self._lock = threading.Lock()
        self._passed_over: set[tuple[str, Kind]] = set()

    def require(self) -> None:
        """Raise ValueError where an application is needed and no route was added."""
        if not self._closed and not self._routes:
            raise ValueError(
                "the consumer has no handler: pass an application, or add routes with"
                " @consumer.on(TABLE)"
            )

    def add(
        self, tables: str, kinds: tuple[Kind, ...], handler: Callable[..., object]
    ) -> None:
        """Add a route; raise TypeError for a consumer with another application."""
        if self._closed:
            raise TypeError(
                "the consumer has an application: omit it, or pass a router instead"
            )
        route = _Route(matcher([tables]), frozenset(kinds or Kind), handler)
        with self._lock:
            self._routes.append(route)
            self._found = {}

    def find(self, op: Op) -> Callable[..., object] | None:
        """Return the handler of an op; None: there is no route for it."""
        table, kind = op.table, op.kind
        key = (table.schema, table.name, kind)
        found = self._found
        if key not in found:
            found[key] = next(
                (
                    route.handler
                    for route in self._routes
                    if kind in route.kinds and route.matches(table.full_name)
                ),
                None,
            )
        return found[key]

    def pass_over(self, op: Op) -> None:
        """Count an op without a route; log the first of its table and kind."""
        record = op.record
        self.metrics(Measure.UNROUTED, 1, record.topic, record.partition)
        key = (op.table.full_name, op.kind)
        if key in self._passed_over:
            return
        with self._lock:
            if key in self._passed_over:
                return
            self._passed_over.add(key)
        _log.info("no route for %s of %s: skipped", op.kind.value, key[0])


class BasicRoutes:
    """The decorator `on` for handlers of one argument, the op."""

    routes: RouteTable

    @overload
    def on(
        self, tables: str, /, *kinds: Kind
    ) -> Callable[[BasicRoute], BasicRoute]: ...
    @overload
    def on(
        self, tables: str, /, *kinds: Kind, into: type[T]
    ) -> Callable[[BasicRowHandler[T]], BasicRowHandler[T]]: ...
    def on(
        self, tables: str, /, *kinds: Kind, into: type[Any] | None = None
    ) -> Callable[[Any], Any]:
        """Return what makes a function the handler of these tables and kinds.

        `tables` is a schema.table, or a pattern with * and ?; no kinds are all. With
        `into`, the handler gets the row as that dataclass: the new one, or of a Delete
        the old one.
        """
        _check(kinds, into)

        def route(handler: Callable[..., object]) -> Callable[..., object]:
            refuse_generator(handler)
            called = handler
            if into is not None:

                @wraps(handler)
                def called(op: Op) -> object:
                    return handler(_row(op).into(into), op)

            self.routes.add(tables, kinds, called)
            return handler

        return route


class BasicRouter(BasicRoutes):
    """An application that calls the handler of each op's table and kind.

        @router.on("shop.orders", Kind.INSERT)
        def placed(op: Op) -> None: ...

        @router.on("shop.*", Kind.INSERT, Kind.UPDATE, into=Order)
        def seen(order: Order, op: Op) -> None: ...

    The first route that fits counts. An op without one is passed over, and counted as
    `unrouted`; `@router.on("*")` as the last route takes all others.
    """

    def __init__(self) -> None:
        self.routes = RouteTable()

    def handle_message(self, op: Op, /) -> object:
        handler = self.routes.find(op)
        if handler is not None:
            return handler(op)
        self.routes.pass_over(op)
        return None


class IdempotentRoutes:
    """The decorator `on` for handlers of a transaction and an op."""

    routes: RouteTable

    @overload
    def on(
        self, tables: str, /, *kinds: Kind
    ) -> Callable[[IdempotentRoute], IdempotentRoute]: ...
    @overload
    def on(
        self, tables: str, /, *kinds: Kind, into: type[T]
    ) -> Callable[[IdempotentRowHandler[T]], IdempotentRowHandler[T]]: ...
    def on(
        self, tables: str, /, *kinds: Kind, into: type[Any] | None = None
    ) -> Callable[[Any], Any]:
        """Return what makes a function the handler of these tables and kinds.

        As `BasicRoutes.on`.
        """
        _check(kinds, into)

        def route(handler: Callable[..., object]) -> Callable[..., object]:
            refuse_coroutine(handler)
            called = handler
            if into is not None:

                @wraps(handler)
                def called(tx: Transaction, op: Op) -> object:
                    return handler(tx, _row(op).into(into), op)

            self.routes.add(tables, kinds, called)
            return handler

        return route


class IdempotentRouter(IdempotentRoutes):
    """An application that calls the handler of each op's table and kind.

        @router.on("shop.orders", Kind.INSERT, into=Order)
        def placed(tx: Transaction, order: Order, op: Op) -> None: ...

    As BasicRouter, with the transaction as the handlers' first argument.
    """

    def __init__(self) -> None:
        self.routes = RouteTable()

    def handle_message(self, tx: Transaction, op: Op, /) -> object:
        handler = self.routes.find(op)
        if handler is not None:
            return handler(tx, op)
        self.routes.pass_over(op)
        return None


def _check(kinds: tuple[Kind, ...], into: type[Any] | None) -> None:
    if into is not None and (not kinds or Kind.TRUNCATE in kinds):
        raise ValueError(
            "into= needs kinds, such as Kind.INSERT, without TRUNCATE, which has no row"
        )


def _row(op: Op) -> Values:
    return op.old if op.kind is Kind.DELETE else op.new


def routes_of(app: object) -> RouteTable:
    """Return a router's routes; of any other application a table that takes none."""
    if isinstance(app, BasicRouter | IdempotentRouter):
        return app.routes
    return RouteTable(closed=True)
