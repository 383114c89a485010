"""Where a transaction is open is asked for until brokers tell, or refuse to."""

from collections.abc import Collection, Iterator
from typing import Self

import pytest

from tests.support.runtime import altered
from walstream.errors import (
    PermissionLacking,
    TopicLost,
    Transient,
    WalstreamError,
)
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.open_ranges import OpenRanges, shown

ONE, TWO = Partition("t", 0), Partition("t", 1)


class Brokers:
    def __init__(self) -> None:
        self.now = 0.0
        self.stable = {ONE: 5, TWO: 3}
        self.error: WalstreamError | None = None
        self.until = 0.0  # then they answer
        self.dead: set[Partition] = set()

    def ends(self, wanted: Collection[Partition], level: str) -> dict[Partition, int]:
        if self.error is not None and self.now < self.until:
            raise self.error
        if self.dead.intersection(wanted):
            raise Transient("nobody leads it")
        return {
            one: 5 if level == "read_uncommitted" else self.stable[one]
            for one in wanted
        }

    def leaderless(self, *_: object) -> set[Partition]:
        return set(self.dead)

    def sleep(self, wait_s: float) -> None:
        self.now += wait_s


class Reader:
    def __init__(self, brokers: Brokers, level: str) -> None:
        self._brokers, self._level = brokers, level

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def ends(self, wanted: Collection[Partition]) -> dict[Partition, int]:
        return self._brokers.ends(wanted, self._level)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Brokers]:
    made = Brokers()
    module = "walstream.kafka.open_ranges"
    monkeypatch.setattr(f"{module}.topic_ends.leaderless", made.leaderless)
    monkeypatch.setattr(f"{module}.admin_client", lambda *_: None)
    monkeypatch.setattr(
        f"{module}.TopicReader",
        lambda given, _: Reader(made, given["isolation.level"]),
    )
    with altered(monotonic=lambda: made.now, sleep=made.sleep):
        yield made


def found(*, patient: bool = False) -> dict[Partition, OffsetBounds]:
    return OpenRanges({}, lambda: False).find({"t": 2}, patient=patient)


def test_a_range_is_what_readers_of_committed_records_lack(brokers: Brokers) -> None:
    assert found() == {TWO: OffsetBounds(3, 5)}
    brokers.stable[TWO] = 5
    assert not found()
    assert not OpenRanges({}, lambda: False).find({})


@pytest.mark.parametrize("patient", [False, True])
def test_brokers_that_are_away_are_waited_for_as_patience_goes(
    brokers: Brokers, patient: bool
) -> None:
    brokers.error, brokers.until = Transient("no answer"), 60.0
    assert bool(found(patient=patient)) == patient
    assert 10 < brokers.now < 63


def test_who_may_not_look_does_not_wait(brokers: Brokers) -> None:
    brokers.error, brokers.until = PermissionLacking("no right"), 60.0
    assert not found(patient=True)
    assert brokers.now < 1


def test_a_partition_is_unknown_for_a_while_after_it_got_a_leader(
    brokers: Brokers,
) -> None:
    brokers.error, brokers.until = TopicLost("unknown partition"), 5.0
    assert found()
    brokers.until = brokers.now + 60  # there is none
    assert not found(patient=True)
    assert brokers.now < 25


def test_a_partition_without_a_leader_is_waited_for_for_a_while(
    brokers: Brokers,
) -> None:
    brokers.dead = {ONE}
    ranges = OpenRanges({}, lambda: False)
    assert ranges.find({"t": 2}, patient=True) == {TWO: OffsetBounds(3, 5)}
    assert ranges.leaderless == {ONE}
    assert 10 < brokers.now < 15


def test_a_stop_is_heard(brokers: Brokers) -> None:
    brokers.error, brokers.until = Transient("no answer"), 60.0
    ranges = OpenRanges({}, lambda: brokers.now > 3)
    with pytest.raises(Transient, match="closed"):
        ranges.find({"t": 2}, patient=True)


def test_few_of_many_are_named() -> None:
    assert shown([TWO, ONE]) == "t[0], t[1]"
    many = [Partition("t", number) for number in range(12)]
    assert shown(many).endswith("t[9] and 2 more")
