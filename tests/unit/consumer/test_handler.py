"""What an application may be."""

import functools
from collections.abc import AsyncIterator, Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
from psycopg import IsolationLevel

from consumer.handler import (
    Fatal,
    Retry,
    basic_batch_handler,
    basic_handler,
    batch_hooks,
    beginning,
    check_batch,
    check_pipeline,
    finished,
    idempotent_batch_handler,
    idempotent_handler,
    isolation_of,
    refuse_coroutine,
    unfinished,
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
    assert app.seen == [((op,),), (None, (op,))]
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


class Generators:
    def handle_message(self, *_: Any) -> Iterator[None]:
        yield

    async def handle_batch(self, *_: Any) -> AsyncIterator[None]:
        yield


def test_a_handler_with_yield_is_refused() -> None:
    app = Generators()
    for taking in (basic_handler, idempotent_handler):
        with pytest.raises(TypeError, match="yield"):
            taking(app.handle_message)
    for taking_batches in (basic_batch_handler, idempotent_batch_handler):
        with pytest.raises(TypeError, match="yield"):
            taking_batches(app)


class Hooked:
    def begin_batch(self, *_: Any) -> None: ...

    async def end_batch(self, *_: Any) -> None: ...

    async def begin_consuming(self) -> None: ...


def test_what_is_called_around_the_ops_is_no_coroutine_function() -> None:
    with pytest.raises(TypeError, match="coroutine"):
        batch_hooks(Hooked())
    with pytest.raises(TypeError, match="coroutine"):
        beginning(Hooked())
    assert batch_hooks(Application()) is None
    assert beginning(Application())() is None


def test_what_a_handler_returned_instead_of_its_work_is_named() -> None:
    async def work() -> None: ...

    assert "coroutine" in (unfinished(work()) or "")
    assert "generator" in (unfinished(one for one in "ab") or "")
    assert "generator" in (unfinished(Generators().handle_batch()) or "")
    assert unfinished(None) is unfinished([1]) is unfinished(iter("ab")) is None
    with pytest.raises(TypeError, match="end_batch"):
        finished("end_batch", work())
    finished("end_batch", 7)


def test_sizes_and_waits_without_a_meaning_are_refused() -> None:
    check_batch(Batches(), 1, 0.5)
    check_batch(Application(), 200, 0)
    for app, batch, linger in ((Batches(), 0, 0), (Batches(), 1, -1)):
        with pytest.raises(ValueError, match=r"batch|linger"):
            check_batch(app, batch, linger)
    with pytest.raises(ValueError, match="handle_batch"):
        check_batch(Application(), 1, 0.5)


def test_a_pipeline_without_a_use_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    check_pipeline(Batches(), pipeline=False)
    check_pipeline(Application(), pipeline=True)
    with pytest.raises(ValueError, match="handle_batch"):
        check_pipeline(Batches(), pipeline=True)
    monkeypatch.setattr("psycopg.Pipeline.is_supported", lambda: False)
    check_pipeline(Application(), pipeline=False)
    with pytest.raises(ValueError, match="libpq"):
        check_pipeline(Application(), pipeline=True)


def test_a_level_is_psycopgs_own_and_no_other_attribute_of_that_name() -> None:
    level = IsolationLevel.REPEATABLE_READ
    assert isolation_of(SimpleNamespace(isolation_level=level)) is level
    assert isolation_of(SimpleNamespace(isolation_level="autonomous")) is None
    assert isolation_of(print) is None
