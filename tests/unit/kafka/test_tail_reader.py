"""The last record of the stream in a partition, whatever else lies at its end."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from tests.support.runtime import altered
from walstream.errors import Transient
from walstream.formats.debezium import EnvelopeEncoder, SinkTurn
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.position import HEADER
from walstream.formats.op import OpEncoder
from walstream.kafka import tail_reader
from walstream.kafka.last_record import LastRecord, digest
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.tail_reader import ERA, TailReader
from walstream.kafka.topic_reader import TopicRecord
from walstream.op import EPOCH_S, Kind, ReplicationOp, Table

TABLE = Table("public", "t", ("id",), (0,), (25,))
ONE = Partition("t", 0)
OTHER = Partition("t", 1)
FIRST = 100  # offset of the first record that is kept
COMMIT_MS = (EPOCH_S + 5) * 1000
STAMP_MS = COMMIT_MS - 3  # a record's own time
KEY = b"1"


def op(
    lsn: int, seq_id: int = 0, kind: Kind = Kind.INSERT, **fields: Any
) -> ReplicationOp:
    row = {"old" if kind is Kind.DELETE else "new": ["1"]}
    return ReplicationOp(
        kind, TABLE, lsn, seq_id, **{"commit_time": 5_000_000, **row, **fields}
    )


def made(
    value: bytes | None, *headers: tuple[str, bytes | None], **fields: Any
) -> TopicRecord:
    return replace(TopicRecord("t", 0, 0, KEY, value, headers, STAMP_MS), **fields)


def plain(*found: Any, **fields: Any) -> TopicRecord:
    """Make a record of the format op."""
    return made(OpEncoder(TABLE).encode(op(*found)), **fields)


def enveloped(found: ReplicationOp, *, header: bool = True) -> TopicRecord:
    """Make one of a format debezium, whose name its header or its block tells."""
    options = DebeziumOptions("app", transaction_block=not header)
    value = EnvelopeEncoder(TABLE, options, SinkTurn()).encode(found)
    if not header:
        return made(value)
    return made(value, (HEADER, b"%d/%d" % (found.lsn, found.seq_id)))


FOREIGN = (
    made(b"not of this stream"),
    made(b'{"lsn":1}'),
    made(b""),
    made(None),
    made(None, key=None),
    made(b"x", (HEADER, b"no position")),
    made(b"x", ("other", None)),
    made(b'{"status":"END","id":"1","event_count":1,"data_collections":[],"ts_ms":1}'),
)


@dataclass
class Brokers:
    """Partitions whose records begin at FIRST, for readers of them."""

    records: dict[Partition, list[TopicRecord]] = field(default_factory=dict)
    at_once: int = 3  # records of an answer
    silent: bool = False
    assigned: list[dict[Partition, int]] = field(default_factory=list)
    properties: dict[str, Any] = field(default_factory=dict)
    closed: int = 0
    now: float = 0.0

    def have(self, *records: TopicRecord, at: Partition = ONE) -> None:
        self.records[at] = [
            replace(one, partition=at.number, offset=offset)
            for offset, one in enumerate(records, FIRST)
        ]

    def bounds(self, topics: Iterable[str]) -> dict[Partition, OffsetBounds]:
        wanted = set(topics)
        return {
            one: OffsetBounds(FIRST, FIRST + len(records))
            for one, records in self.records.items()
            if one.topic in wanted
        }

    @property
    def windows(self) -> list[int]:
        """How far before the end it was read, by turns."""
        ends = self.bounds(["t"])
        return [
            ends[one].end - at for turn in self.assigned for one, at in turn.items()
        ]


class Reader:
    def __init__(self, brokers: Brokers, properties: Any) -> None:
        self._brokers = brokers
        self._next: dict[Partition, int] = {}
        self.bounds = brokers.bounds
        brokers.properties = properties

    def assign(self, offsets: Mapping[Partition, int]) -> None:
        assert all(at >= FIRST for at in offsets.values())
        self._brokers.assigned.append(dict(offsets))
        self._next = dict(offsets)

    def poll(self, timeout_s: float) -> list[TopicRecord]:
        assert timeout_s > 0
        self._brokers.now += timeout_s
        found: list[TopicRecord] = []
        if self._brokers.silent:
            return found
        for one, at in self._next.items():
            taken = self._brokers.records[one][at - FIRST :][: self._brokers.at_once]
            self._next[one] = at + len(taken)
            found += taken
        return found

    def reached(self, bounds: Mapping[Partition, OffsetBounds]) -> bool:
        return all(self._next[one] >= where.end for one, where in bounds.items())

    def close(self) -> None:
        self._brokers.closed += 1


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> Any:
    found = Brokers()

    def opened(properties: Any, timeout_s: float) -> Reader:
        assert timeout_s > 0
        return Reader(found, properties)

    monkeypatch.setattr(tail_reader, "TopicReader", opened)
    with altered(monotonic=lambda: found.now):
        yield found


def last(brokers: Brokers, *records: TopicRecord) -> LastRecord | None:
    """Read back to the last record of one partition."""
    if records:
        brokers.have(*records)
    with TailReader({}) as reader:
        found = reader.last(reader.bounds(["t"])).get(ONE)
    return None if found is None else found.last


def test_a_record_of_the_format_op_has_the_time_of_its_record(brokers: Brokers) -> None:
    record = plain(8, 3)
    assert last(brokers, plain(7), record) == LastRecord(
        8, 3, STAMP_MS, exact=False, value=digest(record.value)
    )


@pytest.mark.parametrize("header", [True, False])
def test_an_envelope_has_the_time_of_its_commit(brokers: Brokers, header: bool) -> None:
    record = enveloped(op(8, 3, xid=77), header=header)
    assert last(brokers, enveloped(op(7)), record) == LastRecord(
        8, 3, COMMIT_MS, exact=True, value=digest(record.value, exact=True), xid=77
    )


def test_one_that_has_its_name_in_a_header_alone_has_the_records_time(
    brokers: Brokers,
) -> None:
    """As the formats that keep the row and no envelope."""
    found = last(brokers, plain(7), made(b"row", (HEADER, b"8/3")))
    assert found == LastRecord(8, 3, STAMP_MS, exact=False, value=digest(b"row"))


def test_debeziums_own_records_say_nothing(brokers: Brokers) -> None:
    options = DebeziumOptions("app", transaction_block=True, version="3.5.0.Final")
    other = made(EnvelopeEncoder(TABLE, options, SinkTurn()).encode(op(9)))
    found = last(brokers, enveloped(op(7)), enveloped(op(8)), other)
    assert found is not None
    assert found.lsn == 8
    assert last(brokers, other, other) is None


@pytest.mark.parametrize(
    "row",
    [
        made(OpEncoder(TABLE).encode(op(900, 1 << 32, snapshot=True))),
        made(OpEncoder(TABLE).encode(op(900, 1, snapshot=True))),
        enveloped(op(900, 1 << 32, snapshot=True)),
        made(b"row", (HEADER, b"900/%d" % (1 << 32))),
    ],
)
def test_a_row_of_a_backfill_is_not_of_the_stream(
    brokers: Brokers, row: TopicRecord
) -> None:
    found = last(brokers, plain(7), plain(8), row, row)
    assert found is not None
    assert found.lsn == 8
    assert last(brokers, row, row) is None


@pytest.mark.parametrize("record", FOREIGN)
def test_foreign_records_are_not_of_the_stream(
    brokers: Brokers, record: TopicRecord
) -> None:
    found = last(brokers, record, plain(8), record)
    assert found is not None
    assert (found.lsn, found.buried) == (8, False)
    assert last(brokers, record, record, record) is None


DELETE = (8, 3, Kind.DELETE)
TOMBSTONE = made(None)


@pytest.mark.parametrize(
    ("records", "value", "buried"),
    [
        ([plain(*DELETE)], True, False),
        ([plain(*DELETE), TOMBSTONE], True, True),
        ([plain(*DELETE), replace(TOMBSTONE, key=b"2")], True, False),
        ([plain(8, 3), TOMBSTONE], True, False),  # it is of no Delete
        ([enveloped(op(*DELETE))], True, False),
        ([enveloped(op(*DELETE)), made(None, (HEADER, b"8/3"))], True, True),
        ([enveloped(op(*DELETE), header=False), TOMBSTONE], True, True),
        ([made(None, (HEADER, b"8/3"))], False, True),
        ([made(None, (HEADER, b"8/3")), made(b"row", (HEADER, b"8/3"))], True, True),
    ],
)
def test_a_tombstone_is_told_apart(
    brokers: Brokers, records: list[TopicRecord], value: bool, buried: bool
) -> None:
    found = last(brokers, plain(7), *records)
    assert found is not None
    assert (found.lsn, found.seq_id) == (8, 3)
    assert ((found.value is not None), found.buried) == (value, buried)


def test_of_records_of_one_name_the_first_value_counts(brokers: Brokers) -> None:
    """A stream that begins again meets that one first."""
    first, second = made(b"1", (HEADER, b"8/3")), made(b"2", (HEADER, b"8/3"))
    late = replace(second, timestamp_ms=STAMP_MS + 1)
    found = last(brokers, plain(7), first, late, late)
    assert found == LastRecord(8, 3, STAMP_MS, exact=False, value=digest(b"1"))


def test_records_of_one_name_may_begin_before_what_is_read(brokers: Brokers) -> None:
    same = [made(b"%d" % n, (HEADER, b"8/3")) for n in range(5)]
    found = last(brokers, plain(7), *same)
    assert found is not None
    assert found.value == digest(b"0")
    assert brokers.windows == [2, 6]


@pytest.mark.parametrize("fields", [{"appended": True}, {"timestamp_ms": None}])
def test_a_record_without_a_commit_time_is_none(
    brokers: Brokers, fields: dict[str, Any]
) -> None:
    assert last(brokers, plain(7), plain(8, **fields)) is None
    # what an envelope says is not the broker's
    assert last(brokers, plain(7), replace(enveloped(op(8)), **fields)) is not None


def test_a_time_that_nobody_says_is_not_looked_for_further_back(
    brokers: Brokers,
) -> None:
    """Else each start would read such a topic until its time is over."""
    assert (
        last(brokers, *[plain(8, appended=True)] * 40, plain(9, appended=True)) is None
    )
    assert brokers.windows == [2]


def test_the_last_one_counts_and_not_the_highest(brokers: Brokers) -> None:
    """After a server was set back names begin anew, lower."""
    found = last(brokers, plain(90), plain(91), plain(8))
    assert found is not None
    assert found.lsn == 8


def test_it_looks_further_back_for_as_long_as_nothing_is_found(
    brokers: Brokers,
) -> None:
    brokers.at_once = 50
    found = last(brokers, *[plain(7)] * 600, plain(8), *[FOREIGN[0]] * 40)
    assert found is not None
    assert found.lsn == 8
    assert brokers.windows == [2, 32, 512]


def test_each_partition_is_looked_at_no_further_than_it_needs(brokers: Brokers) -> None:
    brokers.have(plain(7), plain(8), *[FOREIGN[0]] * 2)
    brokers.have(plain(8), plain(9), at=OTHER)
    brokers.have(at=Partition("t", 2))  # it is empty
    with TailReader({}) as reader:
        found = reader.last(reader.bounds(["t"]))
    assert {one: tail.last and tail.last.lsn for one, tail in found.items()} == {
        ONE: 8, OTHER: 9,
    }  # fmt: skip
    assert brokers.assigned == [
        {ONE: FIRST + 2, OTHER: FIRST},
        {ONE: FIRST},
    ]


def test_nothing_below_the_bound_counts(brokers: Brokers) -> None:
    brokers.have(plain(7), plain(8), FOREIGN[0], FOREIGN[0], FOREIGN[0])
    for first, lsn in ((FIRST + 1, 8), (FIRST + 2, None), (FIRST + 5, None)):
        with TailReader({}) as reader:
            found = reader.last({ONE: OffsetBounds(first, FIRST + 5)})
        assert [one.last.lsn for one in found.values() if one.last] == (
            [lsn] if lsn else []
        )
        assert all(at >= first for turn in brokers.assigned for at in turn.values())
        brokers.assigned.clear()


def test_what_came_since_the_end_was_asked_for_does_not_count(brokers: Brokers) -> None:
    brokers.have(plain(7), plain(8), plain(9))
    with TailReader({}) as reader:
        found = reader.last({ONE: OffsetBounds(FIRST, FIRST + 2)})
    last = found[ONE].last
    assert last is not None
    assert last.lsn == 8


def test_records_of_open_transactions_are_read(brokers: Brokers) -> None:
    """Another sink may write its own in transactions; ours lie behind them."""
    with TailReader({"a": "b", "isolation.level": "read_committed"}):
        assert brokers.properties == {"a": "b", "isolation.level": "read_uncommitted"}
        during = brokers.closed
    assert (during, brokers.closed) == (0, 1)


def test_the_time_is_bounded_and_what_was_found_by_then_counts(
    brokers: Brokers,
) -> None:
    brokers.at_once = 2
    brokers.have(*[FOREIGN[0]] * 5000)
    brokers.have(plain(8), plain(9), at=OTHER)
    with TailReader({}) as reader:
        found = reader.last(reader.bounds(["t"]))
    assert list(found) == [OTHER]
    assert brokers.now == pytest.approx(10, abs=0.5)
    brokers.silent, brokers.now = True, 0.0
    with TailReader({}) as reader:
        assert reader.last(reader.bounds(["t"])) == {}
        assert reader.eras(reader.bounds(["t"])) == {}
    assert brokers.now == pytest.approx(20, abs=0.5)


def era(rules: str, record: TopicRecord) -> TopicRecord:
    return replace(record, headers=[*record.headers, (ERA, rules.encode())])


def test_the_newest_era_is_the_one(brokers: Brokers) -> None:
    brokers.have(
        era("old", plain(7)), era("new", plain(8)), plain(9), era("", FOREIGN[0])
    )
    brokers.have(plain(7), era("new", made(None)), at=OTHER)
    brokers.have(plain(7), at=Partition("t", 2))
    brokers.have(at=Partition("t", 3))
    with TailReader({}) as reader:
        found = reader.eras(reader.bounds(["t"]))
    told = {one.number: (tail.era, tail.era_offset) for one, tail in found.items()}
    assert told == {0: ("", FIRST + 3), 1: ("new", FIRST + 1), 2: ("", -1)}


def test_eras_are_looked_for_as_far_back_as_they_are_told(brokers: Brokers) -> None:
    brokers.at_once = 1000
    brokers.have(era("far", plain(7)), era("near", plain(8)), *[plain(9)] * 8191)
    with TailReader({}) as reader:
        found = reader.eras(reader.bounds(["t"]))
        assert (found[ONE].era, found[ONE].era_offset) == ("near", FIRST + 1)
        brokers.have(era("far", plain(7)), *[plain(9)] * 8192)
        assert reader.eras(reader.bounds(["t"]))[ONE].era == ""


def test_an_era_of_other_bytes_is_another(brokers: Brokers) -> None:
    record = replace(plain(8), headers=[(ERA, b"\xff"), ("none", None)])
    brokers.have(record)
    with TailReader({}) as reader:
        assert reader.eras(reader.bounds(["t"]))[ONE].era == "\ufffd"


def test_brokers_that_do_not_answer_are_no_empty_topic(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise Transient("away")

    brokers.have(plain(8))
    monkeypatch.setattr(Reader, "poll", away)
    with TailReader({}) as reader:
        for read in (reader.last, reader.eras):
            with pytest.raises(Transient):
                read(reader.bounds(["t"]))
    assert brokers.closed == 1


def test_a_value_is_told_without_its_ending(brokers: Brokers) -> None:
    """Of records whose end says when they were made, and is another in a replay."""
    one, again = (made(b"row" + time, (HEADER, b"8/3")) for time in (b"12", b"34"))
    for record in (one, again):
        brokers.have(plain(7), record, record)
        with TailReader({}, 2) as reader:
            found = reader.last(reader.bounds(["t"]))[ONE].last
        assert found == LastRecord(
            8, 3, STAMP_MS, exact=False, value=digest(b"row"), ending=2
        )
