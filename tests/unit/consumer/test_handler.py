"""What an application may be."""

import functools
from typing import Any, cast

import pytest

from consumer.handler import (
    Fatal,
    Retry,
    basic_batch_handler,
    basic_handler,
    check_batch,
    idempotent_batch_handler,
    idempotent_handler,
    refuse_coroutine,
)
from consumer.op import Op


class Application:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def handle_message(self, *given: Any) -> None:
        self.seen.append(given)


def test_an_object_or_a_function_is_taken() -> None:
    app = Application()
    op = cast("Op", object())
    basic_handler(app)(op)
    idempotent_handler(app)(cast("Any", None), op)
    basic_handler(app.seen.append)(op)
    assert app.seen == [(op,), (None, op), op]


def test_anything_else_is_refused() -> None:
    with pytest.raises(TypeError, match="handle_message"):
        basic_handler(cast("Any", 7))
    with pytest.raises(TypeError, match="handle_message"):
        idempotent_handler(cast("Any", 7))


def test_a_verdict_carries_its_cause() -> None:
    cause = ValueError("x")
    assert Retry(cause).cause is cause
    assert Fatal().cause is None


class Batches:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def handle_batch(self, *given: Any) -> None:
        self.seen.append(given)


def test_an_application_of_batches_handles_one_op_as_a_batch_of_one() -> None:
    app = Batches()
    op = cast("Op", object())
    basic_handler(app)(op)
    idempotent_handler(app)(cast("Any", None), op)
    assert app.seen == [([op],), (None, [op])]
    assert basic_batch_handler(app) is not None
    assert basic_batch_handler(Application()) is None
    assert idempotent_batch_handler(Application()) is None


class Coroutines:
    async def handle_message(self, *_: Any) -> None: ...

    async def handle_batch(self, *_: Any) -> None: ...

    async def __call__(self, *_: Any) -> None: ...


def test_the_idempotent_consumer_refuses_coroutine_functions() -> None:
    app = Coroutines()
    for method in (app.handle_message, functools.partial(app.handle_message, 1)):
        with pytest.raises(TypeError, match="coroutine"):
            idempotent_handler(method)
    with pytest.raises(TypeError, match="coroutine"):
        idempotent_batch_handler(app)
    with pytest.raises(TypeError, match="coroutine"):
        refuse_coroutine(app)


def test_sizes_and_waits_without_a_meaning_are_refused() -> None:
    check_batch(Batches(), 1, 0.5)
    check_batch(Application(), 200, 0)
    for app, batch, linger in ((Batches(), 0, 0), (Batches(), 1, -1)):
        with pytest.raises(ValueError, match=r"batch|linger"):
            check_batch(app, batch, linger)
    with pytest.raises(ValueError, match="handle_batch"):
        check_batch(Application(), 1, 0.5)
