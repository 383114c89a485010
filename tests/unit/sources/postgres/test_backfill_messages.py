"""What any role may write is heard of listed tables alone, and stops nothing."""

import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from tests.support.deadline import wait_until
from walstream.errors import ConfigError, Transient, WalstreamError
from walstream.sources.postgres import backfill_messages
from walstream.sources.postgres.backfill_messages import (
    PREFIX,
    BackfillMessages,
    names_of,
)

ALLOWED = ["public.t", "shop.*"]


def message(*tables: object, **more: object) -> bytes:
    return json.dumps({"tables": list(tables), **more}).encode()


def test_listed_tables_are_asked_for_once_each() -> None:
    asked = message("shop.a", "public.t", "shop.a")
    assert names_of(asked, ALLOWED) == ("shop.a", "public.t")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not JSON"),
        (b"\xff", "not JSON"),
        (b"[" * 4000, "not JSON"),
        (b'["public.t"]', "it is not"),
        (b'{"tables": "public.t"}', "it is not"),
        (message("public.t", where="true"), "more than tables"),
        (message("public.t", replace=True), "more than tables"),
        (message(), "names no table"),
        (message(*["public.t"] * 101), "more than 100"),
        (message("public.secret"), "does not list"),
        (message("t"), "does not list"),
        (message(5), "does not list"),
        (message("shop.*"), "has a pattern"),
        (message("public.t", x="a" * 5000), "longer than"),
    ],
)
def test_all_else_is_refused_without_a_word_of_it(content: bytes, said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - its text is compared
        names_of(content, ALLOWED)
    assert said in str(refused.value)
    assert "secret" not in str(refused.value)


@dataclass
class Server:
    tables: list[str] = field(default_factory=list)
    errors: list[WalstreamError] = field(default_factory=list)
    held: threading.Event = field(default_factory=threading.Event)
    counted: Counter[str] = field(default_factory=Counter)

    def find(self, names: Sequence[str]) -> "Server":
        self.held.wait(10)
        if self.errors:
            raise self.errors.pop(0)
        self.tables += names
        return self

    def count(self, what: str) -> None:
        self.counted[what] += 1


@pytest.fixture
def server() -> Server:
    made = Server()
    made.held.set()
    return made


@pytest.fixture
def messages(server: Server) -> Iterator[BackfillMessages]:
    made = BackfillMessages(ALLOWED, server.find, server.count)
    yield made
    made.close()


def counted(server: Server, **numbers: int) -> Callable[[], bool]:
    return lambda: server.counted == Counter(numbers)


def test_a_request_is_passed_on_and_counted(
    server: Server, messages: BackfillMessages
) -> None:
    messages.take(PREFIX, message("public.t"))
    wait_until(counted(server, accepted=1), 10, "it is accepted")
    assert server.tables == ["public.t"]
    messages.take("walstream", message("public.t"))
    messages.take("other", b"anything")
    assert server.counted.total() == 1


def test_what_is_wrong_is_counted_each_time_and_logged_once(
    server: Server, messages: BackfillMessages
) -> None:
    with capture_logs() as logs:
        for _ in range(5):
            messages.take(PREFIX, message("public.secret"))
    assert server.counted == {"refused": 5}
    (said,) = logs
    assert "secret" not in str(said)


def test_a_server_that_is_away_is_waited_for_and_a_refusal_is_final(
    server: Server, messages: BackfillMessages
) -> None:
    server.errors = [Transient("away"), Transient("away"), ConfigError("no row key")]
    messages.take(PREFIX, message("public.t"))
    messages.take(PREFIX, message("shop.b"))
    wait_until(counted(server, accepted=1, refused=1), 10, "both are looked at")
    assert server.tables == ["shop.b"]


def test_more_than_can_wait_are_refused_and_the_stream_never_waits(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backfill_messages, "_MOST_WAITING", 2)
    server.held.clear()
    few = BackfillMessages(ALLOWED, server.find, server.count)
    for _ in range(10):
        few.take(PREFIX, message("public.t"))
    assert server.counted["refused"] >= 7
    server.held.set()
    wait_until(lambda: server.counted.total() == 10, 10, "all are counted")
    few.close()


def test_no_order_of_wrong_messages_fills_the_log(
    server: Server, messages: BackfillMessages
) -> None:
    with capture_logs() as logs:
        for number in range(20):
            server.errors.append(ConfigError(f"there is no table shop.{number}"))
            messages.take(PREFIX, message(f"shop.{number}"))
            messages.take(PREFIX, message("public.secret"))
            messages.take(PREFIX, b"no json")
        wait_until(counted(server, refused=60), 10, "all are refused")
    assert len(logs) == 3


def test_one_that_is_being_looked_at_when_it_ends_is_logged_too(
    server: Server,
) -> None:
    server.errors = [Transient("away")] * 1000
    made = BackfillMessages(ALLOWED, server.find, server.count)
    made.take(PREFIX, message("public.t"))
    wait_until(lambda: len(server.errors) < 1000, 10, "it is looked at")
    with capture_logs() as logs:
        made.close()
        made.close()
    (said,) = logs
    assert said["n"] == 1
