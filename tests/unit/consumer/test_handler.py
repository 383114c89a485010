"""What an application may be."""

from typing import Any, cast

import pytest

from consumer.handler import Fatal, Retry, basic_handler, idempotent_handler
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
