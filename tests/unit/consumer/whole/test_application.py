"""Applications that take whole transactions."""

from typing import Any

import pytest

from consumer.whole.application import transaction_handler


class Method:
    def handle_transaction(self, _tx: object, _whole: object) -> str:
        return "called"


def test_a_method_or_a_function_is_the_handler() -> None:
    assert transaction_handler(Method())(None, None) == "called"  # type: ignore[arg-type]
    assert transaction_handler(lambda *_: 7)(None, None) == 7  # type: ignore[arg-type]


async def coroutine(_tx: object, _whole: object) -> None: ...


@pytest.mark.parametrize(
    ("app", "said"),
    [(object(), "handle_transaction"), (coroutine, "no coroutine function")],
)
def test_what_handles_nothing_is_refused(app: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        transaction_handler(app)
