"""What was before a start is looked at before it is ended; test_open_transactions."""

from typing import Any

import pytest

from walstream.kafka import transaction_start
from walstream.kafka.transaction_coordinator import TransactionCoordinator
from walstream.kafka.transaction_plan import TransactionPlan
from walstream.kafka.transaction_start import TransactionStart


class Book:
    plan = TransactionPlan("mine", ("other",), "told", 0.1, 60_000)

    def __init__(self, *, repeats: bool) -> None:
        self.repeats = repeats

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
    def __init__(self, *_: object) -> None: ...

    def keep(self, partitions: dict[str, int], covered: Any) -> None:
        Kafka.said.append(("keep", partitions, covered()))

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
    coordinator.was_late = True
    found = TransactionStart(*parts).open(lambda: {"t": 2, "told": 1}, coordinator)
    assert found == b"last"
    first = [("keep", {"t": 2}, (7, 0))] if repeats else []
    then = ["fence other", "fence mine", ("end", {"t": 2}, (7, 0)), "send lost"]
    assert Kafka.said == first + then
    assert not coordinator.was_late  # what comes now are commits
