"""Who spoke of a table before a chunk, and whom a snapshot has to see for that."""

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from walstream.sources.postgres.incremental.chunk import (
    Visibility,
)
from walstream.sources.postgres.incremental.earlier_transactions import Past


class Server:
    """Says what a test has it say."""

    def __init__(self) -> None:
        self.now = 50
        self.running: list[int] = []
        self.looks = 0

    def mark(self) -> int:
        return 40

    def seen(self, later_s: float) -> Visibility:
        del later_s
        self.looks += 1
        return Visibility(self.now, self.running)


def at_once(task: Callable[..., Any], *arguments: Any) -> Future[Any]:
    future: Future[Any] = Future()
    future.set_result(task(*arguments))
    return future


def ready(past: Past) -> bool:
    """Ask until what was looked at is taken in."""
    return [past.ready() for _ in range(3)][-1]


def test_those_with_a_number_are_waited_for_once() -> None:
    server = Server()
    past = Past(server, at_once)
    server.running = [39]
    assert not ready(past)
    assert past.waits
    server.running = [41]
    assert ready(past)
    server.running = [38]
    looks = server.looks
    assert ready(past)
    assert (past.waits, server.looks) == (False, looks)


def test_who_spoke_is_known_until_a_snapshot_saw_it() -> None:
    server = Server()
    past = Past(server, at_once)
    assert ready(past)
    for xid in (49, 50, 51):
        past.note(xid)
    before = past.before()
    assert before == {49, 50, 51}
    assert not past.is_seen(before, Visibility(52, [50]))
    assert past.before() == {50}
    assert past.is_seen(past.before(), Visibility(53))
    assert past.before() == frozenset()


def test_many_are_looked_at_and_too_many_are_told() -> None:
    server = Server()
    past = Past(server, at_once, most=2, most_of_all=4)
    assert ready(past)
    looks = server.looks
    for xid in range(45, 48):
        past.note(xid)
    assert ready(past)
    assert server.looks == looks + 1
    assert past.before() == frozenset()
    for xid in range(60, 65):
        past.note(xid)
    assert past.full


def test_what_was_waited_for_ended_before() -> None:
    past = Past(Server(), at_once)
    assert not past.later(60)  # nothing is known yet
    assert ready(past)
    assert (past.later(49), past.later(50)) == (False, True)
