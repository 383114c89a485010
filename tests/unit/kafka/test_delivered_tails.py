"""What counts of what a topic has, and what does not where anything is in doubt."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pytest
from structlog.testing import capture_logs

from walstream.errors import HistoryError, Transient, WalstreamError
from walstream.kafka.delivered_tails import DeliveredTails, SinkTopics, StreamStart
from walstream.kafka.delivery_era import ERAS, OVER, DeliveryEra, rules_of
from walstream.kafka.last_record import LastRecord
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.tail_reader import Tail
from walstream.kafka.topic import Topic
from walstream.testing.memory import MemoryStore

RULES = ["what decides"]
FLUSH = 1000
START = StreamStart(resume=100, flush=FLUSH, repeats=True)
CLIENT = {"bootstrap.servers": "b:1"}


def record(lsn: int) -> LastRecord:
    return LastRecord(lsn, 0, 5, exact=True, value=b"digest")


@dataclass
class Kafka:
    """Ends of partitions, by topic; notes what is read of them."""

    bounds: dict[str, list[tuple[int, int]]]
    last: dict[Partition, int] = field(default_factory=dict)  # its LSN
    eras: dict[Partition, tuple[str, int]] = field(default_factory=dict)
    failures: dict[str, WalstreamError] = field(default_factory=dict)
    asked: list[Any] = field(default_factory=list)
    read: list[dict[Partition, OffsetBounds]] = field(default_factory=list)
    opened: int = 0


class Reader:
    def __init__(self, kafka: Kafka, client: object) -> None:
        assert client == CLIENT
        self._kafka = kafka
        self._fail("open")
        kafka.opened += 1

    def _fail(self, doing: str) -> None:
        if doing in self._kafka.failures:
            raise self._kafka.failures[doing]

    def bounds(self, topics: Iterable[str]) -> dict[Partition, OffsetBounds]:
        self._fail("bounds")
        names = list(topics)
        self._kafka.asked.append(sorted(names))
        return {
            Partition(name, number): OffsetBounds(*where)
            for name in names
            for number, where in enumerate(self._kafka.bounds[name])
        }

    def last(self, bounds: Mapping[Partition, OffsetBounds]) -> dict[Partition, Tail]:
        self._fail("last")
        self._kafka.read.append(dict(bounds))
        return {
            one: Tail(last=record(lsn))
            for one, lsn in self._kafka.last.items()
            if one in bounds and bounds[one].first < bounds[one].end
        }

    def eras(self, bounds: Mapping[Partition, OffsetBounds]) -> dict[Partition, Tail]:
        self._fail("eras")
        return {
            one: Tail(era=rules, era_offset=offset)
            for one, (rules, offset) in self._kafka.eras.items()
            if one in bounds
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._kafka.opened -= 1


class Rig:
    def __init__(self, *names: str, start: StreamStart = START, **kafka: Any) -> None:
        self.store = MemoryStore()
        self.kafka = Kafka({name: [(0, 10), (3, 20)] for name in names}, **kafka)
        self.topics = {name: Topic(name, name, 2, 1000) for name in names}
        self.counted = set(names)
        self.looker = self.begin(start)

    def begin(self, start: StreamStart, rules: object = RULES) -> DeliveredTails:
        topics = SinkTopics("k", rules, CLIENT, self.counted.__contains__)
        return DeliveredTails(
            topics,
            self.store,  # nothing is stored but documents
            start,
            lambda client, _ending: Reader(self.kafka, client),  # type: ignore[arg-type,return-value]
        )

    def know(self, *names: str, since: int = 0, begins: Any = (1, 2)) -> None:
        """Have an era of these topics in the state folder."""
        for name in names:
            era = DeliveryEra(self.rules(name), since, [*begins])
            self.store.write(ERAS.of(f"k/{name}").entry(era))

    def rules(self, name: str) -> str:
        return rules_of(self.topics[name], RULES)

    def look(self) -> None:
        self.looker.look(self.topics.values())
        assert not self.kafka.opened

    def era(self, name: str) -> DeliveryEra | None:
        return ERAS.of(f"k/{name}").read(self.store)

    def tails(self, name: str) -> dict[int, int]:
        """Return the LSNs of the last records that count, by partition."""
        found = self.topics[name].tails
        return (
            {} if found is None else {n: one.last.lsn for n, one in found.tails.items()}
        )


def everywhere(lsn: int, *names: str) -> dict[Partition, int]:
    return {Partition(name, number): lsn for name in names for number in range(2)}


def test_what_was_sent_in_its_era_counts() -> None:
    rig = Rig("t", "u", last=everywhere(500, "t"))
    rig.know("t", "u")
    before = rig.era("t")
    with capture_logs() as said:
        rig.look()
    assert rig.tails("t") == {0: 500, 1: 500}
    assert rig.topics["u"].tails is None
    assert rig.era("t") == before
    assert [(one["event"], one["partitions"], one["up_to"]) for one in said] == [
        ("what Kafka has already is left out", 2, "0/1F4")
    ]


def test_it_is_read_from_where_the_era_begins_or_records_are_kept() -> None:
    rig = Rig("t")
    rig.know("t", begins=(7, 2))
    rig.look()
    assert rig.kafka.read == [
        {Partition("t", 0): OffsetBounds(7, 10), Partition("t", 1): OffsetBounds(3, 20)}
    ]


@pytest.mark.parametrize(
    "stored",
    [
        DeliveryEra("other", 5, [1, 2]),
        OVER,
        DeliveryEra("same", 5, [1]),  # it was made with fewer partitions
    ],
)
def test_with_other_rules_an_era_begins_at_the_ends(stored: DeliveryEra) -> None:
    rig = Rig("t", last=everywhere(500, "t"))
    if stored.rules == "same":
        stored = replace(stored, rules=rig.rules("t"))
    rig.store.write(ERAS.of("k/t").entry(stored))
    rig.look()
    assert rig.topics["t"].tails is None
    assert rig.era("t") == DeliveryEra(rig.rules("t"), FLUSH, [10, 20])


def test_eras_of_other_sinks_are_none_of_its() -> None:
    rig = Rig("t", last=everywhere(500, "t"))
    other = DeliveryEra(rig.rules("t"), 0, [0, 0])
    rig.store.write(ERAS.of("k2/t").entry(other))
    rig.look()
    assert rig.tails("t") == {}
    rig.looker.disown()
    assert ERAS.of("k2/t").read(rig.store) == other


def test_where_the_state_was_lost_records_tell_their_rules() -> None:
    rig = Rig("t", "u", last=everywhere(500, "t", "u"))
    rig.kafka.eras = {
        Partition("t", 0): (rig.rules("t"), 4),
        Partition("t", 1): ("other", 5),
        Partition("u", 0): (rig.rules("u"), 3),
        Partition("u", 1): (rig.rules("u"), 19),
    }
    rig.look()
    # who sent by others may have records on their way
    assert rig.era("t") == DeliveryEra(rig.rules("t"), FLUSH, [4, 20])
    assert rig.era("u") == DeliveryEra(rig.rules("u"), 0, [3, 19])
    assert (rig.tails("t"), rig.tails("u")) == ({}, {0: 500, 1: 500})


def test_a_stream_that_repeats_nothing_begins_eras_and_reads_no_record() -> None:
    start = replace(START, repeats=False)
    rig = Rig("t", "u", "v", start=start, last=everywhere(500, "t", "u", "v"))
    rig.kafka.eras = {Partition("u", 0): (rig.rules("u"), 4)}
    rig.know("t")
    rig.store.write(ERAS.of("k/v").entry(OVER))
    before = rig.era("t")
    rig.look()
    assert rig.kafka.asked == [["u", "v"]]
    assert rig.kafka.read == []
    assert rig.era("t") == before
    for name in "uv":
        assert rig.era(name) == DeliveryEra(rig.rules(name), FLUSH, [10, 20])
    assert [rig.topics[name].tails for name in "tuv"] == [None] * 3


def test_kafka_is_not_asked_where_all_is_known_and_nothing_repeats() -> None:
    rig = Rig("t", start=replace(START, repeats=False))
    rig.know("t")
    rig.kafka.failures["open"] = AssertionError("it is asked")  # type: ignore[assignment]
    rig.look()


@pytest.mark.parametrize(
    ("lsn", "since", "counts"),
    [
        (99, 0, False),  # it was delivered, and the stream does not come to it
        (100, 0, True),
        (500, 500, True),
        (499, 500, False),  # one of the era before may have come late
        (FLUSH, 0, True),
        (FLUSH + 1, 0, False),
    ],
)
def test_a_last_record_is_between_the_position_and_the_servers_end(
    lsn: int, since: int, counts: bool
) -> None:
    rig = Rig("t", last={Partition("t", 1): lsn})
    rig.know("t", since=since)
    with capture_logs() as said:
        rig.look()
    assert rig.tails("t") == ({1: lsn} if counts else {})
    warned = [one for one in said if one["log_level"] == "warning"]
    assert len(warned) == (lsn > FLUSH)
    for one in warned:
        assert (one["sink"], one["topic"], one["partition"]) == ("k", "t", 1)
        assert one["lsn"] == "0/3E9"


def test_a_stream_that_ends_before_a_last_record_does_not_use_it() -> None:
    rig = Rig("t", start=replace(START, until=500))
    rig.kafka.last = {Partition("t", 0): 499, Partition("t", 1): 500}
    rig.know("t")
    rig.look()
    assert rig.tails("t") == {0: 499}
    rig.looker.until = 501  # it goes on
    rig.look()
    assert rig.tails("t") == {0: 499, 1: 500}


def test_a_topic_that_is_not_its_alone_is_not_read() -> None:
    rig = Rig("t", "shared", last=everywhere(500, "t", "shared"))
    rig.know("t", "shared")
    rig.counted.remove("shared")
    rig.look()
    assert rig.kafka.asked == [["t"]]
    assert rig.topics["shared"].tails is None
    assert rig.tails("t")
    told = {name: topic.headers(0, []) for name, topic in rig.topics.items()}
    assert told == {"t": [("walstream-era", rig.rules("t").encode())], "shared": []}


DOING = ["open", "bounds", "eras", "last"]


@pytest.mark.parametrize("doing", DOING)
def test_brokers_that_do_not_answer_are_asked_again(doing: str) -> None:
    rig = Rig("known", "new", "lost", last=everywhere(500, "known", "new", "lost"))
    rig.know("known")
    rig.store.write(ERAS.of("k/new").entry(OVER))
    rules = rig.rules("lost")
    rig.kafka.eras = {Partition("lost", n): (rules, at) for n, at in ((0, 4), (1, 20))}
    rig.kafka.failures[doing] = Transient("away")
    with pytest.raises(Transient):
        rig.looker.look(rig.topics.values())
    assert [topic.tails for topic in rig.topics.values()] == [None] * 3
    rig.kafka.failures.clear()
    rig.look()
    assert rig.tails("known") == {0: 500, 1: 500}
    assert rig.era("new") == DeliveryEra(rig.rules("new"), FLUSH, [10, 20])
    assert rig.era("lost") == DeliveryEra(rig.rules("lost"), 0, [4, 20])


@pytest.mark.parametrize("doing", DOING)
def test_what_is_away_for_long_holds_nothing_back(doing: str) -> None:
    """One partition without a leader would, and with it all other topics."""
    rig = Rig("known", "new", "lost", last=everywhere(500, "known", "new", "lost"))
    rig.know("known")
    rig.kafka.failures[doing] = Transient("away")
    for _ in range(9):
        with pytest.raises(Transient):
            rig.looker.look(rig.topics.values())
    rig.looker.look(rig.topics.values())
    assert [topic.tails for topic in rig.topics.values()] == [None] * 3
    assert (rig.era("lost") == OVER) == (doing != "last")  # where it had none
    with pytest.raises(Transient):  # another time counts from the first again
        rig.looker.look(rig.topics.values())


@pytest.mark.parametrize("doing", DOING)
def test_what_cannot_be_read_is_sent_again(doing: str) -> None:
    """A user who may write, and not read, has no era that a later start goes by."""
    rig = Rig("known", "new", "lost", last=everywhere(500, "known", "new", "lost"))
    rig.know("known")
    rig.store.write(ERAS.of("k/new").entry(OVER))
    rig.kafka.eras = {Partition("lost", 0): (rig.rules("lost"), 4)}
    rig.kafka.failures[doing] = HistoryError("not authorized", hint="grant READ")
    with capture_logs() as said:
        rig.looker.look(rig.topics.values())
    (warned,) = said
    assert warned["log_level"] == "warning"
    assert (warned["sink"], warned["error"]) == ("k", "not authorized")
    assert warned["hint"] == "grant READ"
    assert [topic.tails for topic in rig.topics.values()] == [None] * 3
    assert rig.era("new") == rig.era("lost") == OVER
    known = rig.era("known")
    assert known is not None
    assert known.rules == rig.rules("known")  # what is sent again is by its rules


def test_an_era_that_ends_is_another_at_the_next_start() -> None:
    rig = Rig("t", "u", last=everywhere(500, "t", "u"))
    rig.know("t", "u")
    rig.looker.end("t")
    rig.looker.end()
    assert rig.era("t") == OVER
    rig.look()
    assert rig.tails("t") == {}
    assert rig.tails("u")
    rig.looker.disown()
    assert rig.era("t") == rig.era("u") == OVER


def test_other_rules_are_another_era() -> None:
    rig = Rig("t", last=everywhere(500, "t"))
    rig.know("t")
    rig.begin(START, ["what decided else"]).look(rig.topics.values())
    assert rig.tails("t") == {}


def test_a_partition_that_was_added_is_not_written_to() -> None:
    """Its topic goes on with those that it had: see Topic."""
    rig = Rig("t", last={Partition("t", 2): 500})
    rig.kafka.bounds["t"].append((0, 5))
    rig.know("t")
    rig.look()
    assert rig.tails("t") == {}


def test_a_partition_that_is_not_told_is_empty() -> None:
    rig = Rig("t")
    rig.kafka.bounds["t"] = [(0, 10)]
    rig.store.write(ERAS.of("k/t").entry(OVER))
    rig.look()
    assert rig.era("t") == DeliveryEra(rig.rules("t"), FLUSH, [10, 0])
