"""Topics beside a position: eras as a start would find them, and certain losses."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pytest

from walstream.kafka import delivery_audit
from walstream.kafka.delivered_tails import SinkTopics
from walstream.kafka.delivery_audit import AuditedSink, StoredTopics, TopicAudit, look
from walstream.kafka.delivery_era import OVER, DeliveryEra, rules_of
from walstream.kafka.delivery_verdict import StreamPlace
from walstream.kafka.last_record import LastRecord
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.stored_topic import StoredTopic
from walstream.kafka.tail_reader import Tail
from walstream.kafka.topic import Topic

RULES = ["what decides"]
PLACE = StreamPlace(resume=100, flush=1000, origin="7/shop/0")
SINK = SinkTopics("k", RULES, {"bootstrap.servers": "b:1"}, lambda _: True)


def tail(lsn: int, offset: int = 9, **fields: Any) -> Tail:
    last = LastRecord(lsn, 0, 5, exact=True, value=b"digest")
    return Tail(last=last, offset=offset, **fields)


@dataclass
class Kafka:
    """Two partitions, from offset 0 to 10, of each topic that is there."""

    there: dict[str, Topic]
    tails: dict[Partition, Tail] = field(default_factory=dict)
    eras: dict[Partition, Tail] = field(default_factory=dict)
    ends: dict[Partition, int] = field(default_factory=dict)
    read: list[set[str]] = field(default_factory=list)


class Reader:
    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka

    def topics(self) -> dict[str, int]:
        return {name: one.partitions for name, one in self._kafka.there.items()}

    def bounds(self, topics: Iterable[str]) -> dict[Partition, OffsetBounds]:
        parts = [
            Partition(name, number)
            for name in topics
            for number in range(self._kafka.there[name].partitions)
        ]
        ends = self._kafka.ends
        return {one: OffsetBounds(0, ends.get(one, 10)) for one in parts}

    def look(
        self, bounds: Mapping[Partition, OffsetBounds], turns: Iterable[int]
    ) -> dict[Partition, Tail]:
        assert max(turns) == 8192  # a topic of backfilled rows is not read whole
        self._kafka.read.append({one.topic for one in bounds})
        return {one: it for one, it in self._kafka.tails.items() if one in bounds}

    def eras(self, bounds: Mapping[Partition, OffsetBounds]) -> dict[Partition, Tail]:
        return {one: it for one, it in self._kafka.eras.items() if one in bounds}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


class Topics:
    def __init__(self, kafka: Kafka) -> None:
        self._kafka = kafka

    def describe(self, names: Iterable[str]) -> dict[str, Topic]:
        there = self._kafka.there
        return {name: there[name] for name in names if name in there}

    def close(self) -> None: ...


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> Kafka:
    made = Kafka({"t": Topic("t", "id", 2, 1000)})
    made.tails = {Partition("t", number): tail(500) for number in range(2)}
    monkeypatch.setattr(delivery_audit, "TailReader", lambda _: Reader(made))
    monkeypatch.setattr(delivery_audit, "_topics", lambda _: Topics(made))
    return made


def stored(era: DeliveryEra | None = None, **fields: Any) -> StoredTopics:
    known = replace(StoredTopic(2, "id"), **fields)
    if era is None:
        topic = Topic("t", "id", 2, 1000)
        topic.layout = known.layout
        era = DeliveryEra(rules_of(topic, RULES), 0, [0, 0])
    return StoredTopics({"t": known}, {"t": era})


def audited(found: StoredTopics, **fields: Any) -> TopicAudit:
    names = fields.pop("names", ["t"])
    (one,) = look(AuditedSink(SINK, found, names, **fields))
    return one.judged(PLACE)


def verdicts(found: TopicAudit) -> list[tuple[str, bool]]:
    return [(one.verdict.value, one.left_out) for one in found.partitions]


def test_what_today_would_send_is_left_out(kafka: Kafka) -> None:
    kafka.tails[Partition("t", 1)] = tail(99)
    found = audited(stored())
    assert found.verdict.value == "agree"
    assert verdicts(found) == [("agree", True), ("agree", False)]
    assert [one.end for one in found.partitions] == [10, 10]
    # how keys are spread is one of the rules
    found = audited(stored(layout=3))
    assert verdicts(found)[0] == ("agree", True)


@pytest.mark.parametrize(
    ("era", "why"),
    [
        (OVER, "rewound"),
        (DeliveryEra("other", 0, [0, 0]), "another configuration"),
    ],
)
@pytest.mark.usefixtures("kafka")
def test_of_another_era_all_comes_again(era: DeliveryEra, why: str) -> None:
    found = audited(stored(era))
    assert verdicts(found) == [("repeated", False)] * 2
    assert why in found.partitions[0].why


def test_what_was_sent_before_the_era_comes_again(kafka: Kafka) -> None:
    rules = rules_of(kafka.there["t"], RULES)
    found = audited(stored(DeliveryEra(rules, 0, [9, 10])))
    assert verdicts(found) == [("agree", True), ("repeated", False)]


def test_a_lost_state_goes_by_what_records_tell(kafka: Kafka) -> None:
    nothing = StoredTopics()
    found = audited(nothing)
    assert verdicts(found) == [("repeated", False)] * 2
    ours = Tail(era=rules_of(kafka.there["t"], RULES), era_offset=3, offset=5)
    kafka.eras = {Partition("t", number): ours for number in range(2)}
    assert verdicts(audited(nothing)) == [("agree", True)] * 2
    # who sent by other rules may have records on their way
    for other in (Tail(era="other", era_offset=3), Tail(offset=5), None):
        kafka.eras[Partition("t", 1)] = other or ours
        if other is None:
            del kafka.eras[Partition("t", 1)]  # it was not read in time
        assert verdicts(audited(nothing)) == [("repeated", False)] * 2
    kafka.ends[Partition("t", 1)] = 0
    assert verdicts(audited(nothing)) == [("agree", True), ("agree", False)]


@pytest.mark.usefixtures("kafka")
def test_nothing_is_left_out_where_the_sink_leaves_nothing_out() -> None:
    found = audited(stored(), why="skip_delivered is false")
    assert [one.why for one in found.partitions] == ["skip_delivered is false"] * 2
    (sight,) = look(AuditedSink(SINK, stored(), ["t"]))
    assert verdicts(sight.judged(PLACE, "it ended cleanly"))[0] == ("repeated", False)


def test_a_shared_topic_is_repeated_and_never_foreign(kafka: Kafka) -> None:
    kafka.tails[Partition("t", 0)] = tail(5000, origin="8/other/0")
    kafka.tails[Partition("t", 1)] = tail(500, strange=10)
    found = audited(stored(), shared={"t"})
    assert verdicts(found) == [("agree", False), ("repeated", False)]


def test_records_without_names_are_not_read(kafka: Kafka) -> None:
    found = audited(stored(), unnamed={"t": "no names"})
    assert (found.verdict.value, found.why, found.partitions) == (
        "unknown",
        "no names",
        [],
    )
    assert kafka.read == [set()]


def test_a_topic_that_is_gone_is_missing_if_it_ever_was(kafka: Kafka) -> None:
    known = stored()
    kafka.there.clear()
    assert audited(known).verdict.value == "missing"
    assert look(AuditedSink(SINK, StoredTopics(), ["t"])) == []


@pytest.mark.parametrize(
    ("fields", "why"),
    [({"identity": "before"}, "created again"), ({"partitions": 3}, "had 3")],
)
@pytest.mark.usefixtures("kafka")
def test_another_topic_of_its_name_misses_what_was_delivered(
    fields: dict[str, Any], why: str
) -> None:
    known = stored(DeliveryEra("other", 0, [20, 20]), **fields)
    found = audited(known)
    assert found.verdict.value == "missing"
    assert why in found.why
    # its offsets are not those of the era, so nothing was cut off
    assert {verdict for verdict, _ in verdicts(found)} == {"repeated"}
    unnamed = audited(known, unnamed={"t": "no names"})
    assert unnamed.verdict.value == "missing"


def test_a_partition_that_ends_before_its_era_began_was_cut_off(kafka: Kafka) -> None:
    rules = rules_of(kafka.there["t"], RULES)
    found = audited(stored(DeliveryEra(rules, 0, [10, 11])))
    assert [verdict for verdict, _ in verdicts(found)] == ["repeated", "missing"]
    assert found.verdict.value == "missing"


def test_an_empty_partition_agrees_and_one_not_read_is_unknown(kafka: Kafka) -> None:
    kafka.tails.clear()
    kafka.ends[Partition("t", 0)] = 0
    found = audited(stored())
    assert verdicts(found) == [("agree", False), ("unknown", False)]
    assert found.verdict.value == "unknown"
