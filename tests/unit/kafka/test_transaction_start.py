"""What was before a start is looked at before it is ended; test_open_transactions."""

from typing import Any

import pytest

from tests.support.runtime import altered
from walstream.errors import Transient
from walstream.kafka import transaction_start
from walstream.kafka.position_reader import PositionHidden
from walstream.kafka.transaction_coordinator import TransactionCoordinator
from walstream.kafka.transaction_plan import TransactionPlan
from walstream.kafka.transaction_start import TransactionStart


class Book:
    plan = TransactionPlan("mine", ("other",), "told", 0.1, 60_000)

    def __init__(self, *, repeats: bool) -> None:
        self.repeats = repeats
        self.shared: set[str] = set()  # topics that others write to, too

    def is_alone(self, topic: str) -> bool:
        return topic not in self.shared

    def covered(self, value: bytes | None) -> tuple[int, int]:
        return (7, 0) if value == b"last" else (5, -1)

    def is_delivered(self, _value: bytes) -> bool:
        return False


class Kafka:
    """Notes what is asked, in order."""

    def __init__(self, name: str = "mine") -> None:
        self._name = name

    said: list[Any] = []  # noqa: RUF012 - of one test

    def init_transactions(self, _wait_s: float) -> None:
        self.said.append(f"fence {self._name}")


class Unmarked:
    are_kept = True

    def __init__(self, *_: object) -> None: ...

    def keep(self, partitions: dict[str, int], covered: Any) -> None:
        Kafka.said.append(("keep", partitions, covered()))

    def drop_behind(self, last: tuple[int, int]) -> None:
        Kafka.said.append(("drop", last))

    def send_lost(self, _producer: object) -> None:
        Kafka.said.append("send lost")


class Open:
    def __init__(self, *_: object) -> None:
        self.leaderless: set[Any] = set()

    def end_ops(self, partitions: dict[str, int], last: tuple[int, int]) -> None:
        Kafka.said.append(("end", partitions, last))


@pytest.mark.parametrize("repeats", [True, False])
def test_what_may_be_lost_is_read_before_it_is_ended(
    monkeypatch: pytest.MonkeyPatch, repeats: bool
) -> None:
    """Not that of a stream before, which this one does not go on with."""
    monkeypatch.setattr(Kafka, "said", [])
    monkeypatch.setattr(transaction_start, "UnmarkedRecords", Unmarked)
    monkeypatch.setattr(transaction_start, "OpenTransactions", Open)
    monkeypatch.setattr(transaction_start, "successor", lambda _, name: Kafka(name))
    monkeypatch.setattr(transaction_start, "read_position", lambda *_, **__: b"last")
    parts: Any = Kafka(), Book(repeats=repeats), {}, {}
    coordinator = TransactionCoordinator("kafka")
    found = TransactionStart(*parts).open(lambda: {"t": 2, "told": 1}, coordinator)
    assert found == b"last"
    first = [("keep", {"t": 2}, (7, 0))] if repeats else []
    then = ["fence other", "fence mine", "send lost"]
    last = [("end", {"t": 2}, (7, 0)), "send lost"]
    assert Kafka.said == first + then + last


def test_nothing_is_kept_where_other_sinks_write_too(
    monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    """What is open may be theirs: they send it again themselves."""
    monkeypatch.setattr(transaction_start, "read_position", lambda *_, **__: b"last")
    monkeypatch.setattr(Unmarked, "are_kept", False)
    book = Book(repeats=True)
    book.shared = {"shared"}
    written = {"t": 2, "shared": 1, "told": 1}
    parts: Any = Kafka(), book, {}, {}
    TransactionStart(*parts).open(lambda: written, TransactionCoordinator("kafka"))
    assert started[0] == ("keep", {"t": 2}, (7, 0))
    ended = next(one for one in started if one[0] == "end")
    assert ended[1] == {"t": 2, "shared": 1}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return what is said; the position is not told at first."""
    said: list[Any] = []
    monkeypatch.setattr(Kafka, "said", said)
    monkeypatch.setattr(transaction_start, "UnmarkedRecords", Unmarked)
    monkeypatch.setattr(transaction_start, "OpenTransactions", Open)
    monkeypatch.setattr(transaction_start, "successor", lambda _, name: Kafka(name))
    return said


def test_what_is_kept_is_not_lost_with_a_look_that_fails(
    monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    """Another start would not know of it: what is open is ended by then."""
    now, silent = [0.0], [3]

    def read(*_: object, **__: object) -> bytes:
        if "fence mine" in started and silent[0]:
            silent[0] -= 1
            raise Transient("no answer")
        return b"last"

    monkeypatch.setattr(transaction_start, "read_position", read)
    monkeypatch.setattr(Open, "end_position", lambda *_: None, raising=False)
    parts: Any = Kafka(), Book(repeats=True), {}, {}
    with altered(monotonic=lambda: now[0], sleep=lambda _: None):
        start = TransactionStart(*parts)
        assert start.open(lambda: {"t": 2}, TransactionCoordinator("kafka")) == b"last"
        assert started[-1] == "send lost"
        monkeypatch.setattr(Unmarked, "are_kept", False)
        started.clear()
        silent[0] = 3
        with pytest.raises(Transient, match="no answer"):
            start.open(lambda: {"t": 2}, TransactionCoordinator("kafka"))


def test_a_position_that_is_not_told_for_now_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    """What it covers is to be kept before it is ended; but nobody waits who stops."""
    now, silent = [0.0], [1000]
    coordinator = TransactionCoordinator("kafka")

    def read(*_: object, **__: object) -> bytes:
        if "fence mine" not in started and silent[0]:
            silent[0] -= 1
            raise Transient("no answer")
        return b"last"

    def sleep(wait_s: float) -> None:
        now[0] += wait_s
        if now[0] > 900:
            coordinator.cease()

    monkeypatch.setattr(transaction_start, "read_position", read)
    parts: Any = Kafka(), Book(repeats=True), {}, {}
    with altered(monotonic=lambda: now[0], sleep=sleep):
        TransactionStart(*parts).open(lambda: {"t": 2}, coordinator)
        assert started[0] == ("keep", {"t": 2}, (7, 0))
        assert now[0] == 500
        started.clear()
        silent[0] = 10_000
        with pytest.raises(Transient, match="no answer"):
            TransactionStart(*parts).open(lambda: {"t": 2}, coordinator)
    assert not started  # nobody is fenced


def test_what_a_hidden_position_covers_is_kept_until_it_is_told(
    monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    """Whether its transaction was committed shows when it is ended."""
    now = [0.0]

    def read(*_: object, is_delivered: Any = None) -> bytes:
        if "fence mine" in started:
            return b"before"
        if is_delivered is not None and is_delivered(b"last"):
            return b"last"  # as it was written
        now[0] += 1.0
        raise PositionHidden("it does not come to its end")

    monkeypatch.setattr(transaction_start, "read_position", read)
    parts: Any = Kafka(), Book(repeats=True), {}, {}
    with altered(monotonic=lambda: now[0], sleep=lambda _: None):
        start = TransactionStart(*parts)
        start.open(lambda: {"t": 2}, TransactionCoordinator("kafka"))
    assert started == [
        ("keep", {"t": 2}, (7, 0)),
        "fence other",
        "fence mine",
        ("drop", (5, -1)),
        "send lost",
        ("end", {"t": 2}, (5, -1)),
        "send lost",
    ]


def test_a_position_that_another_sink_hides_is_given_up_in_time(
    monkeypatch: pytest.MonkeyPatch, started: list[Any]
) -> None:
    """Of a sink that has nothing more to send it would stay hidden for ever."""
    now = [0.0]

    def read(*_: object, **__: object) -> bytes:
        now[0] += 30.0
        assert now[0] < 1000
        raise PositionHidden("it does not come to its end")

    monkeypatch.setattr(transaction_start, "read_position", read)
    monkeypatch.setattr(Open, "end_position", lambda *_: None, raising=False)
    monkeypatch.setattr(Unmarked, "are_kept", False)
    parts: Any = Kafka(), Book(repeats=False), {}, {}
    with altered(monotonic=lambda: now[0], sleep=lambda _: None):
        start = TransactionStart(*parts)
        found = start.open(lambda: {"t": 2}, TransactionCoordinator("kafka"))
    assert found is None
    assert now[0] > 60
    assert ("end", {"t": 2}, (5, -1)) in started  # as far as the state folder says
