"""Handlers by table and kind."""

import logging
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, assert_type, cast

import pytest

from consumer import (
    BasicConsumer,
    BasicRouter,
    ConsumerRecord,
    IdempotentConsumer,
    IdempotentRouter,
    Measure,
    Op,
    Transaction,
)
from walstream.op import Kind, ReplicationOp, Table

_ORDERS = Table("shop", "orders", ("id", "total"))
_KAFKA = {"bootstrap.servers": "127.0.0.1:1"}


@dataclass
class Order:
    id: int
    total: Decimal | None


def op(kind: Kind = Kind.INSERT, table: Table = _ORDERS) -> Op:
    row = ["7", "1.50"]
    made = ReplicationOp(
        kind,
        table,
        8,
        0,
        old=row if kind is Kind.DELETE else None,
        new=row if kind in (Kind.INSERT, Kind.UPDATE) else None,
    )
    return Op.of(made, ConsumerRecord("topic", 3, 0, None, None))


def test_the_first_route_that_fits_is_called() -> None:
    router, called = BasicRouter(), list[str]()

    @router.on("shop.orders", Kind.INSERT)
    def insert(_: Op) -> None:
        called.append("insert")

    @router.on("shop.order?", Kind.INSERT, Kind.DELETE)
    @router.on("shop.invoices")
    def either(_: Op) -> None:
        called.append("either")

    @router.on("*")
    def rest(_: Op) -> None:
        called.append("rest")

    for kind in (Kind.INSERT, Kind.DELETE, Kind.UPDATE, Kind.TRUNCATE):
        router.handle_message(op(kind))
    router.handle_message(op(Kind.TRUNCATE, Table("shop", "invoices", ("id",))))
    router.handle_message(op(Kind.INSERT, Table("other", "orders", ("id", "n"))))
    assert called == ["insert", "either", "rest", "rest", "either", "rest"]


def test_a_route_that_is_added_later_counts_too() -> None:
    router, called = BasicRouter(), list[Op]()
    router.handle_message(op())
    router.on("shop.orders")(called.append)
    router.handle_message(op())
    assert len(called) == 1


def test_a_row_comes_as_its_class(caplog: pytest.LogCaptureFixture) -> None:
    router, rows = IdempotentRouter(), list[Order]()

    @router.on("shop.orders", Kind.INSERT, Kind.DELETE, into=Order)
    def handle(_: Transaction, order: Order, of: Op) -> None:
        assert of.table is _ORDERS
        rows.append(order)

    tx = cast("Transaction", None)
    router.handle_message(tx, op())
    router.handle_message(tx, op(Kind.DELETE))
    assert rows == [Order(7, Decimal("1.50"))] * 2
    assert not caplog.messages


def test_what_no_route_is_for_is_counted_and_logged_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counted: list[tuple[Any, ...]] = []
    consumer = BasicConsumer(
        group="g",
        topics="t",
        kafka=_KAFKA,
        metrics=lambda *given: counted.append(given),
    )
    consumer.on("shop.orders", Kind.INSERT)(lambda _: None)
    router = BasicRouter()
    router.routes = consumer.routes
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            router.handle_message(op(Kind.DELETE))
    assert counted == [(Measure.UNROUTED, 1, "topic", 3)] * 2
    assert caplog.messages == ["no route for Delete of shop.orders: skipped"]


def test_a_consumer_has_an_application_or_routes() -> None:
    given = IdempotentConsumer(
        lambda _tx, _op: None, "", group="g", topics="t", kafka=_KAFKA
    )
    with pytest.raises(TypeError, match="has an application"):
        given.on("shop.orders")(lambda _tx, _op: None)
    without = BasicConsumer(group="g", topics="t", kafka=_KAFKA)
    with pytest.raises(ValueError, match="no handler"):
        without.run()
    with pytest.raises(TypeError, match="dsn="):
        IdempotentConsumer(group="g", topics="t", kafka=_KAFKA)
    shared = IdempotentRouter()
    IdempotentConsumer(shared, "", group="g", topics="t", kafka=_KAFKA).on("a.b")(
        lambda _tx, _op: None
    )
    shared.routes.require()


def test_a_route_that_cannot_work_is_refused() -> None:
    router = BasicRouter()
    for kinds in ((), (Kind.INSERT, Kind.TRUNCATE)):
        with pytest.raises(ValueError, match="into="):
            router.on("a.b", *kinds, into=Order)

    async def handle(_tx: Transaction, _op: Op) -> None: ...

    with pytest.raises(TypeError, match="coroutine"):
        IdempotentRouter().on("a.b")(handle)


def test_types_are_known_to_mypy() -> None:
    """Checked by mypy alone: each decorator leaves its function's type as it is."""
    router, transactions = BasicRouter(), IdempotentRouter()

    @router.on("shop.orders")
    def plain(_: Op) -> int:
        return 1

    @router.on("shop.orders", Kind.INSERT, into=Order)
    def row(order: Order, _: Op) -> None:
        assert_type(order.id, int)

    @router.on("shop.orders")  # type: ignore[type-var]  # it takes an op
    def wrong(_: int) -> None: ...

    @router.on("shop.orders", Kind.INSERT, into=Order)  # type: ignore[arg-type]
    def wrong_row(_order: str, _: Op) -> None: ...

    @transactions.on("shop.orders")  # type: ignore[type-var]  # it takes tx, op
    def without_transaction(_: Op) -> None: ...

    assert_type(plain(op()), int)
    assert op().new["id"] != 7  # type: ignore[comparison-overlap]  # a text
