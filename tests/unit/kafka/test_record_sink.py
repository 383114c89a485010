"""A finished record goes where it says, in its order, or is refused for good."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from walstream.errors import HistoryError, RecordRefused, Restart
from walstream.formats.context import Context
from walstream.kafka.last_record import LastRecord, TopicTails, digest
from walstream.kafka.record_sink import ALONE, RecordSink
from walstream.kafka.topic import Topic
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table
from walstream.pipeline.ledger import Transaction
from walstream.records.encoding import SinkRules
from walstream.records.partitioner import murmur2
from walstream.records.producer_record import ProducerRecord
from walstream.records.router import Router, RoutingRules, TopicMapping
from walstream.telemetry import runtime

TABLE = Table("public", "outbox", ("id",), (0,))
UNMAPPED = Table("public", "unmapped", ("id",), (0,))
LIMIT = 1 << 20
PARTITIONS = 11
FIRST = [("walstream-source", b"1/db/1")]


class Outbox:
    """Takes records, and attempts to be made later, in one row."""

    def __init__(self) -> None:
        self.records: list[tuple[Any, ...]] = []
        self.alone: list[tuple[Any, ...]] = []
        self.held: list[Callable[[], bool]] = []

    def put(self, *record: Any) -> None:
        record[5].undelivered += 1
        self.records.append((record[0].name, *record[1:]))

    def put_alone(self, *record: Any) -> None:
        self.alone.append((record[0].name, *record[1:]))

    def hold(self, attempt: Callable[[], bool]) -> None:
        self.held.append(attempt)

    def of(self, _topic: str) -> "Outbox":
        return self

    has_doubts = False
    last_report_tells = True

    def wait(self, _wait_s: float) -> None:
        """Hear nothing more."""

    def close(self) -> None:
        self.has_doubts = not self.last_report_tells


class Rig:
    def __init__(self, known: str = "ab", **rules: Any) -> None:
        self.known = {
            name: Topic(name, name, PARTITIONS, LIMIT)
            for name in [*known, "own", "big"]
        }
        self.known["big"].limit = 1 << 30
        self.asked: list[str] = []
        self.sink = RecordSink(
            SinkRules(
                "k", "op", "murmur2", "send", True, b"1/db/1", Context(), **rules
            ),
            Router("app", RoutingRules({"outbox": TopicMapping("own")}, "", "")),
            SimpleNamespace(  # type: ignore[arg-type]
                known=self.known,
                have=self.have,
                limits=(LIMIT, LIMIT),
                disown=lambda: self.asked.append("disown"),
                close=lambda: None,
            ),
            producer={},
        )
        self.outbox = Outbox()
        self.sink._outboxes = self.outbox  # type: ignore[assignment]  # noqa: SLF001 - no Kafka
        self.sink._fit._limits = (LIMIT, LIMIT)  # noqa: SLF001 - likewise
        self.transaction = Transaction(8)
        self.now_ms = int(runtime.time() * 1000)

    def have(self, names: list[str]) -> bool:
        self.asked += names
        return all(name in self.known for name in names)

    def put(self, *record: Any, table: Table = TABLE, **more: Any) -> None:
        made = (self.now_ms - EPOCH_S * 1000) * 1000
        op = ReplicationOp(Kind.INSERT, table, 8, 0, new=["1"], commit_time=made)
        self.sink.put(ProducerRecord(*record, **more), op, self.transaction)


def test_it_goes_to_the_topic_that_it_names_or_its_tables() -> None:
    rig = Rig()
    rig.put(b"k", b"v", "a")
    rig.put(b"k", b"v")
    assert [record[:3] for record in rig.outbox.records] == [
        ("a", b"v", b"k"), ("own", b"v", b"k"),
    ]  # fmt: skip
    assert [record[3] for record in rig.outbox.records] == [
        murmur2(b"k", PARTITIONS)
    ] * 2
    assert {record[4] for record in rig.outbox.records} == {rig.now_ms}
    rig.put(b"k", b"v", table=UNMAPPED)
    assert rig.sink.tally.dropped == {"public.unmapped": 1}
    assert rig.transaction.undelivered == 2
    assert rig.sink._rules.meter.tables.of("public.outbox").ops == 2  # noqa: SLF001 - its meter


def test_without_a_key_its_table_decides_the_partition() -> None:
    rig = Rig()
    rig.put(None, None, "a")
    (record,) = rig.outbox.records
    expected = murmur2(b"public.outbox", PARTITIONS)
    assert expected != murmur2(b"", PARTITIONS)
    assert record[:4] == ("a", None, None, expected)


def test_its_headers_stand_behind_those_of_the_sink() -> None:
    rig = Rig()
    mine = (("id", b"1"), ("none", None))
    for _ in range(2):
        rig.put(b"k", b"v", "a", mine)
    assert [record[6] for record in rig.outbox.records] == [[*FIRST, *mine], [*mine]]


def test_its_own_time_is_kept_to_the_millisecond() -> None:
    rig = Rig()
    for back_ms in (1, 999, 86_400_007):
        rig.put(b"k", b"v", "a", timestamp=rig.now_ms - back_ms)
        assert rig.outbox.records[-1][4] == rig.now_ms - back_ms


def test_a_time_that_kafka_would_delete_by_is_held() -> None:
    rig = Rig()
    rig.known["a"].retention_ms = 100_000
    rig.put(b"k", b"v", "a", timestamp=rig.now_ms - 500_000)
    assert rig.outbox.records[-1][4] >= rig.now_ms - 50_000


@pytest.mark.parametrize("ahead_ms", [1_000, 60_000, 3_000_000_000_000])
@pytest.mark.parametrize("retention_ms", [-1, 100_000])
def test_a_time_of_the_future_is_held_as_brokers_refuse_it(
    ahead_ms: int, retention_ms: int
) -> None:
    rig = Rig()
    rig.known["a"].retention_ms = retention_ms
    rig.put(b"k", b"v", "a", timestamp=rig.now_ms + ahead_ms)
    assert rig.now_ms <= rig.outbox.records[-1][4] <= runtime.time() * 1000


def test_a_commit_that_is_far_ahead_keeps_its_time() -> None:
    """Our clock may be behind: what seems to be now would be deleted."""
    rig = Rig()
    rig.known["a"].retention_ms = 100_000
    rig.now_ms += 60_000
    rig.put(b"k", b"v", "a", timestamp=rig.now_ms + 60_000)
    assert rig.outbox.records[-1][4] == rig.now_ms


@pytest.mark.parametrize("timestamp", [0, -1, -188_363_404_800_000])
def test_a_time_before_1970_is_held(timestamp: int) -> None:
    """0 means now to the producer; readers in Java refuse what is below."""
    rig = Rig()
    rig.put(b"k", b"v", "a", timestamp=timestamp)
    assert rig.outbox.records[-1][4] == 1


@pytest.mark.parametrize("partition", [0, PARTITIONS - 1])
def test_a_partition_may_be_named(partition: int) -> None:
    rig = Rig()
    rig.put(b"k", b"v", "a", partition=partition)
    assert rig.outbox.records[0][3] == partition


@pytest.mark.parametrize("partition", [-1, PARTITIONS])
def test_a_partition_that_is_not_there_stops(partition: int) -> None:
    with pytest.raises(HistoryError, match=r"names partition -?\d+ of topic 'a'"):
        Rig().put(b"k", b"v", "a", partition=partition)


def test_records_of_an_unknown_topic_wait_counted() -> None:
    rig = Rig()
    rig.put(b"k", b"1", "new")
    rig.put(b"k", b"2", "new")
    assert rig.outbox.records == []
    assert rig.transaction.undelivered == 2
    first, second = rig.outbox.held
    assert not first()
    rig.known["new"] = Topic("new", "new", 1, LIMIT)
    assert first()
    gone = rig.known.pop("new")  # it was deleted, and forgotten
    assert not second()
    rig.known["new"] = gone
    assert second()
    assert [record[1] for record in rig.outbox.records] == [b"1", b"2"]
    assert rig.transaction.undelivered == 2
    assert set(rig.asked) == {"new"}


def test_one_that_is_too_large_stops_or_is_parked() -> None:
    with pytest.raises(RecordRefused):
        Rig().put(None, b"x" * LIMIT, "a")
    rig = Rig(parking="b")
    rig.put(None, b"", "a", [("h", b"x" * LIMIT)])
    (record,) = rig.outbox.records
    assert record[0] == "b"
    assert rig.sink.tally.parked == {"public.outbox": 1}


def test_a_huge_one_goes_alone() -> None:
    rig = Rig()
    rig.put(b"k", b"x" * (ALONE + 1), "big")
    assert len(rig.outbox.alone) == 1
    assert not rig.outbox.records


def test_a_topic_that_it_may_not_name_stops_before_anything_is_sent() -> None:
    rig = Rig(parking="b", max_named_topics=1)
    for name in ("b", "a b"):
        with pytest.raises(HistoryError):
            rig.put(b"k", b"v", name)
    rig.put(b"k", b"v", "a")
    with pytest.raises(HistoryError, match="the 1 that are allowed"):
        rig.put(b"k", b"v", "big")
    assert len(rig.outbox.records) == rig.transaction.undelivered == 1


def delivered(rig: Rig, name: str, lsn: int, seq_id: int = 0) -> None:
    """Have a last record in each partition of a topic, of the time of the ops."""
    last = LastRecord(lsn, seq_id, rig.now_ms, exact=True, value=digest(b"v"))
    rig.known[name].tails = TopicTails(name, dict.fromkeys(range(PARTITIONS), last))


def write(
    rig: Rig, lsn: int, value: bytes | None = b"v", *, headed: bool = False
) -> None:
    """Put a record of this sink's format, with headers of its own or without."""
    made = (rig.now_ms - EPOCH_S * 1000) * 1000
    op = ReplicationOp(Kind.INSERT, TABLE, lsn, 0, new=["1"], commit_time=made)
    topic, outbox = rig.known["own"], rig.outbox
    sink: Any = rig.sink
    where = (outbox, topic, b"k", value, op, rig.transaction)
    if headed:
        assert sink._put_headed(*where, [("h", b"1")], 3, rig.now_ms)  # noqa: SLF001 - what formats call
    else:
        sink._put(*where, 3)  # noqa: SLF001 - likewise


@pytest.mark.parametrize("headed", [False, True])
def test_what_a_partition_has_is_not_sent_and_does_not_count(headed: bool) -> None:
    rig = Rig()
    delivered(rig, "own", 8)
    for lsn in (6, 8, 9):
        write(rig, lsn, headed=headed)
    assert len(rig.outbox.records) == rig.transaction.undelivered == 1
    meter = rig.sink._rules.meter  # noqa: SLF001 - its meter
    assert meter.left_out == 2
    headers = rig.outbox.records[0][6]
    assert headers[: len(FIRST)] == FIRST  # it is this producer's first one there
    assert rig.sink.proven(9) == 9


@pytest.mark.parametrize("headed", [False, True])
def test_a_tombstone_that_is_not_there_is_sent(headed: bool) -> None:
    rig = Rig()
    delivered(rig, "own", 8)
    for value in (b"v", None):
        write(rig, 8, value, headed=headed)
    assert [record[1] for record in rig.outbox.records] == [None]


def test_a_record_of_a_handler_is_never_left_out() -> None:
    """Its op does not name it: one op may make several."""
    rig = Rig()
    delivered(rig, "a", 9)
    rig.put(b"k", b"v", "a")
    assert len(rig.outbox.records) == 1


def test_one_that_is_parked_is_parked_again() -> None:
    rig = Rig(parking="b")
    delivered(rig, "own", 9)
    write(rig, 8, b"x" * LIMIT)
    assert [record[0] for record in rig.outbox.records] == ["b"]
    assert rig.sink.tally.parked == {"public.outbox": 1}


@pytest.mark.parametrize("headed", [False, True])
def test_a_last_record_of_another_history_ends_the_era(headed: bool) -> None:
    rig = Rig()
    delivered(rig, "own", 9)
    write(rig, 8, headed=headed)
    assert rig.sink.proven(9) == 8
    with pytest.raises(Restart):
        rig.sink.proven(10)
    assert rig.asked == ["disown"]
    with pytest.raises(Restart):
        write(rig, 10, headed=headed)
    assert rig.outbox.records == []


@pytest.mark.parametrize("tells", [True, False])
def test_what_is_heard_as_it_closes_may_end_the_era(tells: bool) -> None:
    rig = Rig()
    rig.outbox.last_report_tells = tells
    rig.sink.close()
    assert rig.asked == ([] if tells else ["disown"])
