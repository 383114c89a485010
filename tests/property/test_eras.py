"""What a run between two others sent does not count, whatever the three were told.

Each history ends with a row that Kafka does not have: it is lost where the last
record of its partition is believed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.oracles.debezium import VARIANTS, Writer, ops
from walstream.config import load
from walstream.errors import TopicLost
from walstream.formats.op import OpEncoder
from walstream.kafka import tail_reader
from walstream.kafka.delivered_tails import DeliveredTails, SinkTopics, StreamStart
from walstream.kafka.delivery_era import rules_of
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.tail_reader import Tail
from walstream.kafka.topic import Topic
from walstream.kafka.topic_reader import TopicRecord
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table
from walstream.sources.delivered_topics import DeliveredTopics
from walstream.testing.memory import MemoryStore

_TABLE: Final = Table("public", "t", ("id",), (0,))
_ENCODER: Final = OpEncoder(_TABLE)
_HEADER: Final = b"7/shop/0"
_START: Final = StreamStart(100, 900, repeats=True)
_BASE: Final = """
[sources.app]
kind = "postgres"
dsn = "host=/run/postgresql"
sinks = ["k"]
[sinks.k]
kind = "kafka"
topic = "app.{{table}}"
{sink}
[sinks.k.producer]
"bootstrap.servers" = "localhost:9092"
"""
_OTHER: Final = """
[sinks.two]
kind = "kafka"
topic = "app.t"
[sinks.two.producer]
"bootstrap.servers" = "localhost:9092"
"""


class _Reader:
    """Reads one topic of two partitions in memory."""

    log: tuple[list[TopicRecord], ...] = ([], [])
    denials = 0  # answers of a broker that does not know the topic yet

    def __init__(self, _properties: object, **_: float) -> None:
        self._next: dict[Partition, int] = {}

    def bounds(self, _topics: object) -> dict[Partition, OffsetBounds]:
        if _Reader.denials:
            _Reader.denials -= 1
            raise TopicLost("there is no topic 'app.t'")
        return {
            Partition("app.t", at): OffsetBounds(0, len(found))
            for at, found in enumerate(self.log)
        }

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        self._next = dict(offsets)

    def poll(self, _timeout_s: float) -> Iterator[TopicRecord]:
        for one, at in self._next.items():
            yield from self.log[one.number][at:]
            self._next[one] = len(self.log[one.number])

    def reached(self, bounds: Mapping[Partition, OffsetBounds]) -> bool:
        return all(self._next[one] >= where.end for one, where in bounds.items())

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail_reader, "TopicReader", _Reader)
    monkeypatch.setattr(_Reader, "log", ([], []))


def _send(lsn: int, **headers: str) -> None:
    """Have a record of the stream at a partition's end."""
    op = ReplicationOp(Kind.INSERT, _TABLE, lsn, 0, new=[str(lsn)])
    log = _Reader.log[0]
    told = [(name.replace("_", "-"), text.encode()) for name, text in headers.items()]
    where = "app.t", 0, len(log)
    log.append(TopicRecord(*where, b"k", _ENCODER.encode(op), told, EPOCH_S * 1000))


def _topic() -> Topic:
    return Topic("app.t", "id", 2, 1000)


@pytest.fixture
def start(tmp_path: Path) -> Callable[..., Topic]:
    """Begin a stream by a configuration; it gives the topic as it was looked at."""

    def begin(
        positions: MemoryStore, sink: str = "", sinks: str = "", names: str = '["k"]'
    ) -> Topic:
        path = tmp_path / "walstream.toml"
        text = _BASE.format(sink=sink) + sinks
        path.write_text(text.replace('["k"]', names))
        made = DeliveredTopics(load(path, {}), "app", positions)
        made.begin(_START)
        found = _topic()
        look = made.of("k", _HEADER, joins=False) if '"k"' in names else None
        if look is not None:
            look.look([found])
        return found

    return begin


def _believed(topic: Topic) -> dict[int, int]:
    tails = topic.tails.tails if topic.tails else {}
    return {one: tail.last.lsn for one, tail in tails.items()}


def test_the_last_record_of_the_same_configuration_counts(start: Any) -> None:
    positions = MemoryStore()
    start(positions)
    _send(500)
    assert _believed(start(positions)) == {0: 500}


@pytest.mark.parametrize(
    "sink",
    [
        'skip_delivered = false\non_truncate = "skip"',
        'skip_delivered = false\npartitioner = "crc32"',
        'at_most_once = true\npartitioner = "random"',
        'format = "event"',
    ],
)
def test_not_where_another_that_does_not_look_was_between(
    start: Any, sink: str
) -> None:
    """It was tried, killed, and taken back: what it dropped is still to be sent."""
    positions = MemoryStore()
    start(positions)
    start(positions, sink)
    _send(500)
    assert _believed(start(positions)) == {}


def test_nor_where_another_sink_wrote_there_meanwhile(start: Any) -> None:
    positions = MemoryStore()
    start(positions)
    start(positions, sinks=_OTHER, names='["two"]')
    _send(500)
    assert _believed(start(positions)) == {}


def test_the_order_of_patterns_is_a_rule(start: Any) -> None:
    """The first that matches decides the topic."""
    one = 'topics = {"public.a*" = {name = "app.a"}, "public.*b" = {name = "app.t"}}'
    two = 'topics = {"public.*b" = {name = "app.t"}, "public.a*" = {name = "app.a"}}'
    positions = MemoryStore()
    start(positions, one)
    _send(500)
    assert _believed(start(positions, two)) == {}


def _look(positions: MemoryStore, rules: str, flush: int) -> Topic:
    """Begin a stream whose state folder may be another."""
    topics = SinkTopics("k", [rules], {}, lambda _: True)
    topic = _topic()
    DeliveredTails(topics, positions, StreamStart(100, flush, repeats=True)).look(
        [topic]
    )
    return topic


@pytest.mark.parametrize("before", ["other", "old"])
def test_a_lost_state_does_not_let_late_records_of_others_count(before: str) -> None:
    """They were on their way when the ends were looked at, and are named below."""
    told = {"walstream_era": rules_of(_topic(), ["x"])} if before == "other" else {}
    _send(400, walstream_source="7/shop/0", **told)
    positions = MemoryStore()
    _look(positions, "y", 500)
    _send(450)  # late, and by the rules of before
    assert _believed(_look(positions, "y", 900)) == {}
    _send(600)  # by ours
    assert _believed(_look(positions, "y", 900)) == {0: 600}


def test_a_producer_that_tells_no_era_ends_the_one_before() -> None:
    """The state folder was lost after a run of the option false."""
    _send(400, walstream_source="7/shop/0", walstream_era=rules_of(_topic(), ["x"]))
    assert _believed(_look(MemoryStore(), "x", 900)) == {0: 400}
    _send(500, walstream_source="7/shop/0")
    _send(501)
    assert _believed(_look(MemoryStore(), "x", 900)) == {}


def test_rows_of_a_backfill_do_not_end_it() -> None:
    _send(400, walstream_source="7/shop/0", walstream_era=rules_of(_topic(), ["x"]))
    op = ReplicationOp(Kind.INSERT, _TABLE, 500, 1 << 32, new=["1"])
    op.snapshot = True
    headers = [("walstream-source", b"7/shop/0")]
    where = "app.t", 0, len(_Reader.log[0])
    _Reader.log[0].append(TopicRecord(*where, b"k", _ENCODER.encode(op), headers, 1))
    assert _believed(_look(MemoryStore(), "x", 900)) == {0: 400}


@pytest.mark.parametrize("schemas", [True, False])
def test_an_envelope_is_met_by_its_row_and_no_other_of_the_transaction(
    schemas: bool,
) -> None:
    """Another walstream may name another table's row so, of the same commit."""
    writer = Writer(replace(VARIANTS["dbz"], schemas=schemas, version="walstream 1"))
    found = [
        one
        for _, one in ops()
        if isinstance(one, ReplicationOp) and one.table.name in {"pk2", "full_"}
        if not one.key_changed
    ]
    assert len(found) > 3
    for op in found:
        encoder, key = writer.of(op.table)
        writer.turn.begin(10**18)
        record = TopicRecord("t", 0, 0, key.render(op), encoder.encode(op), [], 0)
        tail = Tail()
        tail.add(record)
        assert tail.last is not None
        assert tail.last.exact
        writer.turn.begin(3 * 10**18)
        again = encoder.encode(op)
        assert again != record.value
        assert tail.last.is_of(op, again)
        other = next(one for one in found if one.table is not op.table)
        named = replace(
            other,
            lsn=op.lsn,
            seq_id=op.seq_id,
            commit_time=op.commit_time,
            xid=op.xid,
        )
        assert not tail.last.is_of(named, writer.of(other.table)[0].encode(named))


def test_ends_that_could_not_be_read_in_time_may_be_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _send(400, walstream_source="7/shop/0", walstream_era="another")
    positions = MemoryStore()
    with monkeypatch.context() as slow:
        slow.setattr(tail_reader, "_READ_S", -1.0)
        _look(positions, "y", 500)
    _send(450)  # late
    assert _believed(_look(positions, "y", 900)) == {}


def test_a_topic_that_a_broker_does_not_know_yet_is_asked_for_again() -> None:
    """Else the era of one that was just created would be over at once."""
    positions = MemoryStore()
    _Reader.denials = 2
    _look(positions, "y", 500)
    assert _Reader.denials == 0
    _send(600)
    assert _believed(_look(positions, "y", 900)) == {0: 600}
