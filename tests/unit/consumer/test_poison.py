"""Records that are no op."""

from collections.abc import Iterator
from typing import Any, cast

import pytest

from consumer.errors import HandlerFailed, PoisonRecord
from consumer.op import ConsumerRecord
from consumer.poison import checked, meet
from walstream.errors import WalstreamError

_RECORD = ConsumerRecord("t", 2, 9, b"k", b"secret")
_REASON = WalstreamError("not an op record: KeyError")


def test_stop_names_the_place_and_no_byte_of_the_record() -> None:
    with pytest.raises(PoisonRecord) as caught:
        meet("stop", _RECORD, _REASON)
    assert caught.value.offset == 9
    assert "t[2] offset 9" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_skip_and_a_function_let_it_pass() -> None:
    seen: list[ConsumerRecord] = []
    meet("skip", _RECORD, _REASON)
    meet(seen.append, _RECORD, _REASON)
    assert seen == [_RECORD]


def test_a_function_that_raises_stops() -> None:
    def refuse(_: ConsumerRecord) -> None:
        raise ValueError("secret")

    with pytest.raises(HandlerFailed) as caught:
        meet(refuse, _RECORD, _REASON)
    assert "secret" not in str(caught.value)


def test_a_misspelt_policy_is_refused() -> None:
    assert checked("skip") == "skip"
    with pytest.raises(ValueError, match="on_poison"):
        checked(cast("Any", "ignore"))


async def park(_: ConsumerRecord) -> None: ...


class Parking:
    async def __call__(self, _: ConsumerRecord) -> None: ...


@pytest.mark.parametrize("policy", [park, Parking()])
def test_a_coroutine_function_is_refused_where_nobody_would_await_it(
    policy: Any,
) -> None:
    with pytest.raises(TypeError, match="no coroutine function"):
        checked(policy)
    assert checked(policy, coroutines=True) is policy


@pytest.mark.parametrize("coroutines", [False, True])
def test_a_generator_function_is_refused(coroutines: bool) -> None:
    def never(record: ConsumerRecord) -> Iterator[ConsumerRecord]:
        yield record

    with pytest.raises(TypeError, match="generator"):
        checked(never, coroutines=coroutines)


def test_an_awaitable_that_is_returned_is_run_or_stops() -> None:
    with pytest.raises(HandlerFailed) as caught:
        meet(lambda record: park(record), _RECORD, _REASON)  # noqa: PLW0108 - a plain function
    assert "coroutine, which is never awaited" in str(caught.value.__cause__)
    returned: list[object] = []
    meet(lambda _: 7, _RECORD, _REASON, returned.append)
    assert returned == [7]
