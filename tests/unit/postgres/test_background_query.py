"""A question that is asked until it is answered."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
import structlog

from walstream.errors import PermissionLacking, Transient, WalstreamError
from walstream.postgres.background_query import Question


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def started(task: Callable[..., Any], *arguments: Any) -> Future[Any]:
    """Answer at once."""
    future: Future[Any] = Future()
    try:
        future.set_result(task(*arguments))
    except WalstreamError as error:
        future.set_exception(error)
    return future


def refuse() -> str:
    raise Transient("too many connections")


def deny() -> str:
    raise PermissionLacking("denied")


def test_an_answer_comes_at_the_next_asking() -> None:
    question = Question[str](started, "a thing", Clock())
    owed = [question.open]
    answers = []
    for _ in range(2):
        answers.append(question.ask(str.upper, "a"))
        owed.append(question.open)
    assert [answer and answer.value for answer in answers] == [None, "A"]
    assert owed == [False, True, False]


def test_what_passes_is_asked_again_after_a_second_and_told_once() -> None:
    clock = Clock()
    question = Question[str](started, "a thing", clock)
    with structlog.testing.capture_logs() as logs:
        for _ in range(3):
            assert question.ask(refuse) is None  # asked
            assert question.ask(refuse) is None  # refused
            assert question.refused
            assert question.open
            assert question.ask(refuse) is None  # not yet
            clock.now += 1.0
        answers = [question.ask(str.upper, "a") for _ in range(2)]
    assert [answer and answer.value for answer in answers] == [None, "A"]
    assert not question.open
    assert [entry["log_level"] for entry in logs] == ["warning"]
    assert "a thing" in logs[0]["event"]


def test_what_lasts_is_raised() -> None:
    question = Question[str](started, "a thing", Clock())
    question.ask(deny)
    with pytest.raises(PermissionLacking):
        question.ask(deny)
    assert not question.open
