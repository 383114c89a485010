"""What was committed and then aborted is sent again, and nothing else."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any, Self, cast

import pytest
from confluent_kafka import KafkaError, KafkaException
from structlog.testing import capture_logs

from tests.support.runtime import altered
from walstream.errors import PermissionLacking, TopicLost, Transient, WalstreamError
from walstream.formats.op import OpEncoder
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicRecord
from walstream.kafka.transaction_coordinator import TransactionCoordinator
from walstream.kafka.unmarked_record import UnmarkedRecords
from walstream.op import CHUNK_BITS, Kind, ReplicationOp, Table

TABLE = Table("public", "t", ("id",))
ONE, TWO = Partition("t", 0), Partition("t", 1)
COVERED = (10, 5)


def value_of(lsn: int, seq_id: int) -> bytes:
    op = ReplicationOp(Kind.INSERT, TABLE, lsn, seq_id, new=["1"], commit_time=5)
    return OpEncoder(TABLE).encode(op)


def row_of(lsn: int) -> bytes:
    op = ReplicationOp(Kind.INSERT, TABLE, lsn, 1 << CHUNK_BITS, new=["1"])
    return OpEncoder(TABLE).encode(replace(op, snapshot=True, commit_time=5))


class Kafka:
    """Partitions, what is open in them from an offset on, and what is aborted."""

    def __init__(self) -> None:
        self.now = 0.0
        self.records: dict[Partition, list[TopicRecord]] = {ONE: [], TWO: []}
        self.open: dict[Partition, int] = {}
        self.aborted: dict[Partition, range] = {}
        self.silent = 0  # questions without an answer
        self.dead: set[Partition] = set()  # partitions without a leader

    def put(self, place: Partition, value: bytes | None, key: bytes = b"k") -> None:
        offset = len(self.records[place])
        self.records[place].append(TopicRecord(*place, offset, key, value, (), 7))

    def sleep(self, wait_s: float) -> None:
        self.now += wait_s

    def leaderless(self, _admin: object, _topics: object) -> set[Partition]:
        return self.dead


class Reader:
    def __init__(self, kafka: Kafka, level: str) -> None:
        self._kafka = kafka
        self._committed = level == "read_committed"
        self._next: dict[Partition, int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def _end(self, place: Partition) -> int:
        end = len(self._kafka.records[place])
        return self._kafka.open.get(place, end) if self._committed else end

    def ends(self, places: Collection[Partition]) -> dict[Partition, int]:
        if self._kafka.silent:
            self._kafka.silent -= 1
            raise Transient("no answer")
        if self._kafka.dead.intersection(places):
            raise TopicLost("nobody leads it")
        return {one: self._end(one) for one in places}

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        self._next = dict(offsets)

    def drop(self, places: Collection[Partition]) -> None:
        for one in places:
            del self._next[one]

    def reached(self, bounds: Mapping[Partition, OffsetBounds]) -> bool:
        return all(self._next[one] >= where.end for one, where in bounds.items())

    def poll(self, wait_s: float) -> list[TopicRecord]:
        self._kafka.sleep(wait_s)
        found = []
        for one, at in list(self._next.items()):
            if at < self._end(one):
                self._next[one] += 1
                if not (self._committed and at in self._kafka.aborted.get(one, ())):
                    found.append(self._kafka.records[one][at])
        return found


class Sender:
    def __init__(self, *, is_full: bool = False) -> None:
        self.sent: list[tuple[str, int, bytes | None, bytes | None]] = []
        self.committed = 0
        self.is_full = is_full

    def begin_transaction(self) -> None:
        assert not self.sent

    def produce(  # noqa: PLR0913 - librdkafka's
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int,
        *,
        timestamp: int,
        headers: object,
    ) -> None:
        if self.is_full:
            raise BufferError
        assert (timestamp, headers) == (7, [])
        self.sent.append((topic, partition, value, key))

    def flush(self, _wait_s: float) -> None:
        self.is_full = False

    def commit_transaction(self, _wait_s: float) -> None:
        self.committed = len(self.sent)


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Iterator[Kafka]:
    made = Kafka()
    module = "walstream.kafka.open_ranges"
    monkeypatch.setattr(f"{module}.topic_ends.leaderless", made.leaderless)
    monkeypatch.setattr(f"{module}.admin_client", lambda *_: None)
    monkeypatch.setattr(
        f"{module}.TopicReader",
        lambda given, _: Reader(made, given["isolation.level"]),
    )
    with altered(monotonic=lambda: made.now, sleep=made.sleep):
        yield made


def begun(kafka: Kafka) -> UnmarkedRecords:
    """Put an op that is covered, one more with a tombstone, and one that is not."""
    kafka.put(ONE, value_of(9, 0))
    kafka.put(ONE, value_of(10, 5))
    kafka.put(ONE, None)
    kafka.put(ONE, value_of(11, 0))
    kafka.put(ONE, value_of(9, 1))  # of another source
    kafka.put(TWO, value_of(11, 1))
    kafka.open = {ONE: 0, TWO: 0}
    made = UnmarkedRecords({}, TransactionCoordinator("kafka"))
    made.keep({"t": 2}, lambda: COVERED)
    return made


def sent_of(made: UnmarkedRecords, sender: Sender) -> list[Any]:
    made.send_lost(cast("Any", sender))
    assert sender.committed == len(sender.sent)
    return sender.sent


def test_what_is_covered_and_was_aborted_is_sent_again(kafka: Kafka) -> None:
    made = begun(kafka)
    kafka.open, kafka.aborted = {}, {ONE: range(5), TWO: range(1)}
    texts = [value_of(9, 0), value_of(10, 5), None]
    expected = [("t", 0, text, b"k") for text in texts]
    assert sent_of(made, Sender(is_full=True)) == expected


def test_what_was_committed_is_not_sent_again(kafka: Kafka) -> None:
    made = begun(kafka)
    kafka.open = {}
    assert not sent_of(made, Sender())


def test_of_what_was_committed_in_part_the_rest_is_sent_again(kafka: Kafka) -> None:
    made = begun(kafka)
    kafka.open, kafka.aborted = {}, {ONE: range(1, 5)}
    expected = [("t", 0, value_of(10, 5), b"k"), ("t", 0, None, b"k")]
    assert sent_of(made, Sender()) == expected


def test_what_turns_out_not_to_be_delivered_is_not_sent(kafka: Kafka) -> None:
    """Its stream sends it: the transaction that told the position was aborted."""
    made = begun(kafka)
    made.drop_behind((10, 4))
    kafka.open, kafka.aborted = {}, {ONE: range(5), TWO: range(1)}
    assert sent_of(made, Sender()) == [("t", 0, value_of(9, 0), b"k")]
    made = begun(kafka)
    made.drop_behind((8, 0))
    assert not made.are_kept


def test_what_is_still_open_is_let_be(kafka: Kafka) -> None:
    assert not sent_of(begun(kafka), Sender())


def test_nothing_is_asked_where_nothing_is_open(kafka: Kafka) -> None:
    kafka.put(ONE, value_of(9, 0))
    made = UnmarkedRecords({}, TransactionCoordinator("kafka"))
    made.keep({"t": 2}, lambda: pytest.fail("the position is asked for"))
    kafka.silent = 1
    assert not sent_of(made, Sender())


def test_brokers_that_do_not_answer_are_waited_for(kafka: Kafka) -> None:
    """What is ended before they do may be lost: of a broker that comes back, say."""
    kafka.silent = 200
    made = begun(kafka)
    assert kafka.now > 30
    kafka.open, kafka.aborted = {}, {ONE: range(5)}
    assert len(sent_of(made, Sender())) == 3


def test_brokers_that_refuse_to_tell_hold_up_no_start(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> dict[Partition, int]:
        raise PermissionLacking("no right to read")

    monkeypatch.setattr(Reader, "ends", refuse)
    assert not begun(kafka).are_kept
    assert kafka.now < 1


def test_a_partition_without_a_leader_keeps_no_other_from_being_read(
    kafka: Kafka,
) -> None:
    kafka.dead = {TWO}
    made = begun(kafka)
    assert made.are_kept
    assert 10 < kafka.now < 15
    kafka.open, kafka.aborted = {}, {ONE: range(5)}
    assert len(sent_of(made, Sender())) == 3


def test_rows_of_a_backfill_are_sent_again_with_them(kafka: Kafka) -> None:
    """Whether they were committed nobody knows: they may be there twice."""
    op = ReplicationOp(Kind.INSERT, TABLE, 30, 1 << CHUNK_BITS, new=["1"])
    row = OpEncoder(TABLE).encode(replace(op, snapshot=True, commit_time=5))
    kafka.put(ONE, row)
    kafka.put(ONE, value_of(11, 0))
    kafka.put(ONE, row)  # it comes again
    kafka.open = {ONE: 0}
    made = UnmarkedRecords({}, TransactionCoordinator("kafka"))
    made.keep({"t": 2}, lambda: COVERED)
    kafka.open, kafka.aborted = {}, {ONE: range(3)}
    assert sent_of(made, Sender()) == [("t", 0, row, b"k")]


def test_a_stop_ends_the_look_at_what_is_open(kafka: Kafka) -> None:
    kafka.silent = 10_000
    coordinator = TransactionCoordinator("kafka")
    made = UnmarkedRecords({}, coordinator)
    coordinator.cease()
    with pytest.raises(Transient, match="closed"):
        made.keep({"t": 2}, lambda: COVERED)


def test_a_look_for_lost_records_is_not_given_up(kafka: Kafka) -> None:
    made = begun(kafka)
    kafka.open, kafka.aborted, kafka.silent = {}, {ONE: range(5)}, 20
    assert len(sent_of(made, Sender())) == 3


def test_a_stop_ends_it(kafka: Kafka) -> None:
    coordinator = TransactionCoordinator("kafka")
    kafka.put(ONE, value_of(9, 0))
    kafka.open = {ONE: 0}
    made = UnmarkedRecords({}, coordinator)
    made.keep({"t": 1}, lambda: COVERED)
    kafka.open, kafka.aborted, kafka.silent = {}, {ONE: range(1)}, 1000
    coordinator.cease()
    with pytest.raises(Transient, match="closed"):
        made.send_lost(cast("Any", Sender()))


def test_what_a_slow_broker_hands_over_late_is_kept(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It tells the ends at once, and its first records after some seconds."""
    kafka.put(ONE, value_of(10, 5))
    kafka.open = {ONE: 0}
    poll = Reader.poll

    def slow(reader: Reader, wait_s: float) -> list[TopicRecord]:
        if kafka.now >= 6:
            return poll(reader, wait_s)
        kafka.sleep(wait_s)
        return []

    monkeypatch.setattr(Reader, "poll", slow)
    made = UnmarkedRecords({}, TransactionCoordinator("kafka"))
    made.keep({"t": 1}, lambda: COVERED)
    kafka.open, kafka.aborted = {}, {ONE: range(1)}
    sender = Sender()
    made.send_lost(cast("Any", sender))
    assert sender.sent == [("t", 0, value_of(10, 5), b"k")]


def test_records_that_come_one_by_one_are_all_kept(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seq_id in range(5):
        kafka.put(ONE, value_of(10, seq_id))
    kafka.open = {ONE: 0}
    poll = Reader.poll

    def slow(reader: Reader, wait_s: float) -> list[TopicRecord]:
        kafka.sleep(3.0)
        return poll(reader, wait_s)

    monkeypatch.setattr(Reader, "poll", slow)
    made = UnmarkedRecords({}, TransactionCoordinator("kafka"))
    made.keep({"t": 1}, lambda: COVERED)
    assert len(made._kept[ONE]) == 5  # noqa: SLF001 - what a loss would lack


def test_a_stop_ends_the_wait_for_records(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.put(ONE, value_of(10, 5))
    kafka.open = {ONE: 0}
    coordinator = TransactionCoordinator("kafka")

    def silent(_: Reader, wait_s: float) -> list[TopicRecord]:
        kafka.sleep(wait_s)
        if kafka.now > 30:
            coordinator.cease()
        return []

    monkeypatch.setattr(Reader, "poll", silent)
    made = UnmarkedRecords({}, coordinator)
    with pytest.raises(Transient, match="closed"):
        made.keep({"t": 1}, lambda: COVERED)
    assert not made.are_kept


def test_a_commit_that_fails_is_aborted_and_sent_again(kafka: Kafka) -> None:
    """The client begins no transaction while a failed one is not aborted."""
    made = begun(kafka)
    kafka.open.clear()
    kafka.aborted = {ONE: range(5), TWO: range(1)}
    late = KafkaError(KafkaError.INVALID_TXN_STATE, "late", txn_requires_abort=True)
    failures = [KafkaException(late)]

    class Failing(Sender):
        def commit_transaction(self, wait_s: float) -> None:
            if failures:
                raise failures.pop()
            super().commit_transaction(wait_s)

        def abort_transaction(self, _wait_s: float) -> None:
            self.sent.clear()

    producer = Failing()
    with pytest.raises(Transient, match="late"):
        made.send_lost(cast("Any", producer))
    assert made.are_kept
    made.send_lost(cast("Any", producer))
    assert producer.committed
    assert not made.are_kept


def test_deletes_with_their_tombstones_are_kept_however_many(kafka: Kafka) -> None:
    """A tombstone has no name of its own, as what others wrote has none."""
    for number in range(1500):
        op = ReplicationOp(Kind.DELETE, TABLE, 10, number, old=["1"], commit_time=5)
        kafka.put(ONE, OpEncoder(TABLE).encode(op), b"%d" % number)
        kafka.put(ONE, None, b"%d" % number)
    kafka.put(ONE, value_of(11, 0))
    kafka.open = {ONE: 0}
    made = UnmarkedRecords({}, TransactionCoordinator("kafka"))
    made.keep({"t": 2}, lambda: (10, 1 << 62))
    kafka.open, kafka.aborted = {}, {ONE: range(3001)}
    with capture_logs() as logs:
        assert len(sent_of(made, Sender())) == 3000
    waited, sent = logs  # all is aborted: no record came for long
    assert waited["event"] == "what Kafka committed cannot be read: it is waited for"
    assert sent["records"] == 3000


@pytest.mark.parametrize("value", [value_of(10, 0), row_of(8)])
def test_what_was_aborted_and_then_committed_is_not_sent_again(
    kafka: Kafka, value: bytes
) -> None:
    """Another application's transaction may be open in front of both."""
    kafka.put(ONE, b"of others")
    kafka.put(ONE, value)
    kafka.put(ONE, value_of(11, 0))  # aborted with it, and not covered
    kafka.put(ONE, value)
    kafka.open = {ONE: 0}
    made = UnmarkedRecords({}, TransactionCoordinator("kafka"))
    made.keep({"t": 2}, lambda: COVERED)
    assert made.are_kept
    kafka.open, kafka.aborted = {}, {ONE: range(1, 3)}
    assert not sent_of(made, Sender())


def test_what_was_aborted_twice_is_sent_once(kafka: Kafka) -> None:
    for _ in range(2):
        kafka.put(ONE, value_of(10, 0))
    kafka.open = {ONE: 0}
    made = UnmarkedRecords({}, TransactionCoordinator("kafka"))
    made.keep({"t": 2}, lambda: COVERED)
    kafka.open, kafka.aborted = {}, {ONE: range(2)}
    assert len(sent_of(made, Sender())) == 1


def test_what_comes_slowly_is_read_to_its_end(kafka: Kafka) -> None:
    for number in range(600):
        kafka.put(ONE, value_of(10, number))
    kafka.open = {ONE: 0}
    made = UnmarkedRecords({}, TransactionCoordinator("kafka"))
    made.keep({"t": 2}, lambda: (10, 1 << 62))
    kafka.open = {}  # all of it was committed
    assert not sent_of(made, Sender())
    assert kafka.now > 60


@pytest.mark.parametrize("error", [TopicLost, PermissionLacking])
def test_a_topic_of_which_nothing_is_told_hides_no_other(
    kafka: Kafka, monkeypatch: pytest.MonkeyPatch, error: type[WalstreamError]
) -> None:
    kafka.put(ONE, value_of(10, 0))
    kafka.open = {ONE: 0}
    ends = Reader.ends

    def told(self: Reader, places: Collection[Partition]) -> dict[Partition, int]:
        if any(one.topic == "gone" for one in places):
            raise error("nothing is told")
        return ends(self, places)

    monkeypatch.setattr(Reader, "ends", told)
    made = UnmarkedRecords({}, TransactionCoordinator("kafka"))
    with capture_logs() as logs:
        made.keep({"t": 2, "gone": 1}, lambda: COVERED)
    assert made.are_kept
    assert [one["topics"] for one in logs] == ["gone"]
