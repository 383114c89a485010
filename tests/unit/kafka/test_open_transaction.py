"""Transactions left open are ended; those of producers that live are let be."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from tests.support.runtime import altered
from walstream.errors import Transient
from walstream.formats.op import OpEncoder
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.open_transaction import OpenTransactions
from walstream.kafka.topic_reader import TopicRecord
from walstream.kafka.transaction_coordinator import TransactionCoordinator
from walstream.op import CHUNK_BITS, Kind, ReplicationOp, Table

TABLE = Table("public", "t", ("id",))
ONE, TWO = Partition("t", 0), Partition("t", 1)
TOLD = Partition("told", 0)
LONGEST_S = 60.0


def value_of(lsn: int, seq_id: int = 0) -> bytes:
    return OpEncoder(TABLE).encode(
        ReplicationOp(Kind.INSERT, TABLE, lsn, seq_id, new=["1"], commit_time=5)
    )


def row_of(index: int) -> bytes:
    op = ReplicationOp(Kind.INSERT, TABLE, 30, (1 << CHUNK_BITS) + index, new=["1"])
    return OpEncoder(TABLE).encode(replace(op, snapshot=True, commit_time=5))


class Log:
    """Partitions whose records are of producers' transactions, which end there."""

    def __init__(self) -> None:
        self.now = 0.0
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.records: dict[Partition, list[TopicRecord]] = {ONE: [], TWO: [], TOLD: []}
        self.open: dict[tuple[Partition, str], list[int]] = {}
        self.readable: dict[Partition, list[int]] = {ONE: [], TWO: [], TOLD: []}
        self.dead: set[Partition] = set()
        self.record_s = 0.0  # to read one
        self.holds_back = False  # is nothing handed over?

    def put(
        self, place: Partition, owner: str, value: bytes | None, key: bytes | None
    ) -> None:
        offset = len(self.records[place])
        record = TopicRecord(*place, offset, key, value, (), 7)
        self.records[place].append(record)
        self.open.setdefault((place, owner), []).append(offset)

    def end(self, owner: str, *, commits: bool) -> None:
        for place, whose in list(self.open):
            if whose == owner:
                offsets = self.open.pop((place, whose))
                if commits:
                    self.readable[place] += offsets

    def sleep(self, wait_s: float) -> None:
        self.now += wait_s
        due = [one for one in self.later if one[0] <= self.now]
        self.later = [one for one in self.later if one[0] > self.now]
        for _, happen in due:
            happen()

    def ends(
        self, places: Collection[Partition], *, stable: bool
    ) -> dict[Partition, int]:
        if self.dead.intersection(places):
            self.sleep(5)
            raise Transient("no leader")
        return {one: self._end_of(one, stable) for one in places}

    def _end_of(self, place: Partition, stable: bool) -> int:
        begins = [some[0] for (at, _), some in self.open.items() if at == place]
        end = len(self.records[place])
        return min(begins, default=end) if stable else end

    def leaderless(
        self, _admin: object, partitions: Mapping[str, int]
    ) -> set[Partition]:
        return {one for one in self.dead if one.topic in partitions}

    def texts(self, place: Partition) -> list[bytes | None]:
        return [self.records[place][at].value for at in self.readable[place]]


class Sender:
    def __init__(self, log: Log, name: str, *, is_full: bool = False) -> None:
        self._log = log
        self._name = name
        self._is_full = is_full
        self.begun = 0

    def begin_transaction(self) -> None:
        self.begun += 1

    def produce(
        self, topic: str, value: bytes, key: bytes, number: int, **_: object
    ) -> None:
        if self._is_full:
            raise BufferError
        self._log.put(Partition(topic, number), self._name, value, key)

    def flush(self, wait_s: float) -> int:
        if self._is_full:
            self._log.sleep(wait_s)
        return 0

    def commit_transaction(self, _wait_s: float) -> None:
        self._log.end(self._name, commits=True)

    def abort_transaction(self, _wait_s: float) -> None:
        self._log.end(self._name, commits=False)


class Reader:
    def __init__(self, log: Log, level: str) -> None:
        self._log = log
        self._level = level
        self._from: dict[Partition, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ends(self, places: Collection[Partition]) -> dict[Partition, int]:
        return self._log.ends(places, stable=self._level == "read_committed")

    def assign(self, offsets: dict[Partition, int]) -> None:
        self._from = offsets

    def reached(self, bounds: Mapping[Partition, OffsetBounds]) -> bool:
        return all(self._from[one] >= where.end for one, where in bounds.items())

    def poll(self, wait_s: float) -> list[TopicRecord]:
        if self._log.holds_back:
            self._log.sleep(wait_s)
            return []
        self._log.sleep(self._log.record_s)
        found = [
            record
            for place, first in self._from.items()
            for record in self._log.records[place][first : first + 1]
        ]
        for record in found:
            self._from[Partition(record.topic, record.partition)] += 1
        return found


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> Iterator[Log]:
    made = Log()
    module = "walstream.kafka.open_ranges"
    monkeypatch.setattr(f"{module}.topic_ends.leaderless", made.leaderless)
    monkeypatch.setattr(f"{module}.admin_client", lambda *_: None)
    monkeypatch.setattr(
        f"{module}.TopicReader", lambda given, _: Reader(made, given["isolation.level"])
    )
    with altered(monotonic=lambda: made.now, sleep=made.sleep):
        yield made


class Coordinator(TransactionCoordinator):
    """One that answers at once; `stops` tells whether it is asked no more."""

    def __init__(self, stops: Callable[[], bool] = lambda: False) -> None:
        super().__init__("kafka")
        self._stops = stops

    def is_stopped(self) -> bool:
        return self._stops()


def opened(log: Log, *names: str) -> OpenTransactions:
    senders = [Sender(log, name) for name in names or ("mine", "detached")]
    return OpenTransactions(cast("Any", senders), {}, Coordinator(), LONGEST_S)


def put(log: Log, place: Partition, owner: str, *names: tuple[int, int]) -> None:
    for name in names:
        log.put(place, owner, value_of(*name), b"k")


def test_ops_behind_the_position_are_aborted(log: Log) -> None:
    put(log, ONE, "mine", (20, 0), (20, 1))
    opened(log).end_ops({"t": 2}, (10, 5))
    assert not log.open
    assert not log.texts(ONE)
    assert log.now < LONGEST_S


def test_ops_that_it_covers_are_committed_once(log: Log) -> None:
    put(log, ONE, "mine", (9, 0), (10, 0))
    opened(log).end_ops({"t": 2}, (10, 5))
    assert not log.open
    assert log.texts(ONE) == [value_of(9), value_of(10), value_of(10)]


def test_one_of_many_records_is_ended_too(log: Log) -> None:
    """However long it takes to read them."""
    log.record_s = 3.0
    put(log, ONE, "mine", *((20, number) for number in range(40)))
    opened(log).end_ops({"t": 2}, (10, 5))
    assert not log.open
    assert not log.texts(ONE)


def test_a_living_transaction_of_another_source_is_not_copied(log: Log) -> None:
    """Sources of rows may share topics, and their names have no common order."""
    put(log, ONE, "other", (5, 0))
    log.later = [(0.1, lambda: put(log, ONE, "other", (6, 0)))]
    log.later += [(20.0, lambda: log.end("other", commits=True))]
    opened(log).end_ops({"t": 2}, (10, 5))
    assert log.texts(ONE) == [value_of(5), value_of(6)]
    assert log.now < LONGEST_S


def test_one_behind_that_of_another_source_is_ended(log: Log) -> None:
    put(log, ONE, "other", (5, 0))
    put(log, ONE, "mine", (10, 0))
    log.later = [(20.0, lambda: log.end("other", commits=True))]
    opened(log).end_ops({"t": 2}, (10, 5))
    assert not log.open
    assert log.texts(ONE) == [value_of(5), value_of(10), value_of(10)]


def test_a_committed_op_is_not_lost_with_one_that_comes_again(log: Log) -> None:
    put(log, ONE, "mine", (10, 0), (20, 0))
    opened(log).end_ops({"t": 2}, (10, 5))
    assert not log.open
    assert value_of(10) in log.texts(ONE)


def test_a_position_is_ended_as_its_delivery_says(log: Log) -> None:
    log.put(TOLD, "detached", b"1", b"key")
    opened(log).end_position("told", b"key", lambda value: value == b"1")
    assert log.texts(TOLD) == [b"1", b"1", b"1"]  # of the first it was not
    log.put(TOLD, "mine", b"2", b"key")
    opened(log).end_position("told", b"key", lambda value: value == b"1")
    assert not log.open
    assert log.texts(TOLD) == [b"1", b"1", b"1"]


def test_of_another_sink_s_transaction_nothing_is_ended(log: Log) -> None:
    """What is committed stands behind one of another sink, for some milliseconds."""
    log.put(TOLD, "other", b"9", b"other")
    log.put(TOLD, "mine", b"1", b"key")
    log.end("mine", commits=True)
    log.later = [(0.1, lambda: log.end("other", commits=True))]
    answers: list[Callable[[bytes], bool]] = [lambda _: True, lambda _: False]
    for is_delivered in answers:
        senders = [Sender(log, "mine")]
        found = OpenTransactions(cast("Any", senders), {}, Coordinator(), LONGEST_S)
        found.end_position("told", b"key", is_delivered)
        assert not senders[0].begun


def test_rows_of_a_backfill_alone_are_committed_as_late_as_copies_are(
    log: Log,
) -> None:
    """Nobody asks for them again, and none is behind what they are older than."""
    log.put(ONE, "mine", row_of(1), b"k")
    opened(log).end_ops({"t": 2}, (10, 5))
    assert not log.open
    assert log.texts(ONE) == [row_of(1), row_of(1)]
    assert log.now > LONGEST_S


def test_rows_of_a_backfill_before_ops_that_come_again_are_aborted_with_them(
    log: Log,
) -> None:
    log.put(ONE, "mine", row_of(1), b"k")
    put(log, ONE, "mine", (20, 0))
    log.put(ONE, "mine", row_of(2), b"k")
    opened(log).end_ops({"t": 2}, (10, 5))
    assert not log.open
    assert not log.texts(ONE)


def test_a_partition_without_leader_keeps_no_other_from_being_looked_at(
    log: Log,
) -> None:
    put(log, ONE, "mine", (20, 0))
    put(log, TWO, "mine", (20, 1))
    log.dead = {TWO}
    found = opened(log)
    found.end_ops({"t": 2}, (10, 5))
    assert found.leaderless == {TWO}
    assert log.now < 30
    assert (ONE, "mine") not in log.open


def test_one_that_loses_its_leader_meanwhile_keeps_no_other_open(log: Log) -> None:
    put(log, ONE, "mine", (9, 0))
    put(log, TWO, "mine", (9, 1))
    log.later = [(20.0, lambda: log.dead.add(TWO))]
    opened(log).end_ops({"t": 2}, (10, 5))
    assert (ONE, "mine") not in log.open
    assert log.texts(ONE) == [value_of(9), value_of(9)]


def test_what_is_not_handed_over_is_not_taken_for_nothing(log: Log) -> None:
    """What is sent behind it would be there twice."""
    put(log, ONE, "mine", (12, 0))
    log.holds_back = True
    with pytest.raises(Transient, match=r"nothing is sent .*"):
        opened(log).end_ops({"t": 2}, (10, 5))
    log.holds_back = False
    opened(log).end_ops({"t": 2}, (10, 5))
    assert not log.open


def test_a_full_queue_is_a_passing_error(log: Log) -> None:
    put(log, ONE, "mine", (20, 0))
    senders = [Sender(log, "mine", is_full=True)]
    found = OpenTransactions(cast("Any", senders), {}, Coordinator(), LONGEST_S)
    with pytest.raises(Transient, match="finds no room"):
        found.end_ops({"t": 2}, (10, 5))


def test_a_stop_ends_the_wait(log: Log) -> None:
    put(log, ONE, "mine", (10, 0))
    stops: list[float] = []
    log.later = [(3.0, lambda: stops.append(log.now))]
    coordinator = Coordinator(lambda: bool(stops))
    senders = [Sender(log, "mine")]
    found = OpenTransactions(cast("Any", senders), {}, coordinator, LONGEST_S)
    with pytest.raises(Transient, match="closed"):
        found.end_ops({"t": 2}, (10, 5))
    assert log.now < 6


def test_a_broker_that_does_not_answer_is_waited_for(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its partition has a leader: what is open there would be written behind."""
    put(log, ONE, "mine", (20, 0))
    ends = log.ends

    def asked(places: Collection[Partition], *, stable: bool) -> Any:
        if log.now < 30:
            log.sleep(5)
            raise Transient("no answer")
        return ends(places, stable=stable)

    monkeypatch.setattr(log, "ends", asked)
    opened(log, "mine").end_ops({"t": 2}, (10, 5))
    assert not log.open
    assert not log.texts(ONE)


def test_a_transaction_that_fails_is_aborted_for_the_next_to_begin(log: Log) -> None:
    """As where too few replicas are in sync for the copy to be taken in time."""
    put(log, ONE, "mine", (10, 5))
    late = KafkaError(KafkaError.INVALID_TXN_STATE, "late", txn_requires_abort=True)
    commits, aborts = [KafkaException(late)], 0

    class Failing(Sender):
        def commit_transaction(self, wait_s: float) -> None:
            if commits:
                raise commits.pop()
            super().commit_transaction(wait_s)

        def abort_transaction(self, _wait_s: float) -> None:
            nonlocal aborts
            aborts += 1

    senders = [Failing(log, "mine")]
    found = OpenTransactions(cast("Any", senders), {}, Coordinator(), LONGEST_S)
    with pytest.raises(Transient, match="late"):
        found.end_ops({"t": 2}, (10, 5))
    assert aborts == 1


def test_nothing_of_an_aborted_transaction_behind_it_is_copied(log: Log) -> None:
    """The sink's other producer was killed in its next one, which is aborted by now."""
    put(log, ONE, "detached", (10, 0))
    put(log, ONE, "mine", (20, 0), (20, 1))
    log.end("mine", commits=False)
    opened(log).end_ops({"t": 2}, (10, 5))
    assert {*log.texts(ONE)} == {value_of(10, 0)}


def test_brokers_that_tell_nothing_for_long_are_told_of(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One may have a leader that cannot be reached from here."""

    def asked(*_: object, **__: object) -> dict[Partition, int]:
        log.sleep(5)
        raise Transient("no answer")

    monkeypatch.setattr(log, "ends", asked)
    stops: list[bool] = []
    log.later = [(600.0, lambda: stops.append(True))]
    senders = cast("Any", [Sender(log, "mine")])
    found = OpenTransactions(senders, {}, Coordinator(lambda: bool(stops)), LONGEST_S)
    with capture_logs() as logs, pytest.raises(Transient):
        found.end_ops({"t": 2}, (10, 5))
    assert [one["event"] for one in logs] == [
        "brokers do not tell what is open: they are waited for"
    ]
