"""Compares the topics of a sink with a position: each partition's tail, in one look.

Reads Kafka alone, and changes nothing. The position is judged by afterwards, since what
streams meanwhile must not look like a gap.
"""

from collections.abc import Collection, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Final

from walstream.config.tls import Confined
from walstream.kafka.advertised_listeners import Whereabouts
from walstream.kafka.delivered_tails import SinkTopics
from walstream.kafka.delivery_era import DeliveryEra, rules_of
from walstream.kafka.delivery_verdict import (
    Agreement,
    StreamPlace,
    TailVerdict,
    TopicRules,
    judge,
    truncated,
    worst,
)
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.stored_topic import StoredTopic, created_again
from walstream.kafka.tail_reader import LOOK_BACK, Tail, TailReader
from walstream.kafka.topic import Topic
from walstream.kafka.topic_creation import Creation
from walstream.kafka.topics import Topics
from walstream.telemetry.json_types import ShownLsn

_ANSWER_S: Final = 5.0
_LATE: Final = 1 << 62  # no record lies there
_UNREAD: Final = "its end could not be read in time"
_GONE: Final = "the topic is gone, with what was delivered to it"
_AGAIN: Final = "the topic was created again: what was delivered before is gone"
_NO_ERA: Final = "not every record near the ends was surely sent by the rules of today"
_ENDED: Final = "it is rewound, or another history's records were found"
_CHANGED: Final = "it was sent by another configuration, version or layout"


@dataclass(frozen=True, slots=True)
class PartitionAudit:
    """One partition beside the position."""

    partition: int
    verdict: Agreement
    why: str  # "": nothing is to be said
    end: int  # offset that the next record will get
    last: ShownLsn | None  # of the last change there; null: none was found
    seq_id: int | None
    left_out: bool  # changes up to the last are there, and are not sent again


@dataclass(frozen=True, slots=True)
class TopicAudit:
    """One topic; without partitions its records tell no names, or it is gone."""

    topic: str
    verdict: Agreement
    why: str
    partitions: list[PartitionAudit]


@dataclass(frozen=True, slots=True)
class StoredTopics:
    """State of one sink's topics, as a state folder has it."""

    topics: Mapping[str, StoredTopic] = field(default_factory=dict)
    eras: Mapping[str, DeliveryEra] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AuditedSink:
    """One sink, and what is to be looked at."""

    topics: SinkTopics
    stored: StoredTopics
    names: Collection[str]
    why: str = ""  # nothing is left out; "": it may be
    unnamed: Mapping[str, str] = field(default_factory=dict)  # why, by topic
    shared: Collection[str] = ()
    confined: Confined | None = None


@dataclass(frozen=True, slots=True)
class TopicSight:
    """One topic as it was seen."""

    name: str
    found: Topic | None
    stored: StoredTopic | None
    unnamed: str = ""
    rules: TopicRules = field(default_factory=TopicRules)
    begins: list[int] = field(default_factory=list)
    bounds: list[OffsetBounds] = field(default_factory=list)
    tails: list[Tail | None] = field(default_factory=list)  # None: not read

    def judged(self, place: StreamPlace, why: str = "") -> TopicAudit:
        """Compare with the position; `why` all that is beyond it comes again, if so."""
        if self.found is None:
            return TopicAudit(self.name, Agreement.MISSING, _GONE, [])
        lost = _loss(self.found, self.stored)
        rules = replace(self.rules, why=why or self.rules.why)
        partitions = [
            self._partition(number, place, rules) for number in range(len(self.tails))
        ]
        if lost:
            return TopicAudit(self.name, Agreement.MISSING, lost, partitions)
        if self.unnamed:
            return TopicAudit(self.name, Agreement.UNKNOWN, self.unnamed, [])
        verdict = worst(one.verdict for one in partitions)
        return TopicAudit(self.name, verdict, "", partitions)

    def _partition(
        self, number: int, place: StreamPlace, rules: TopicRules
    ) -> PartitionAudit:
        end, begin = self.bounds[number].end, self.begins[number]
        tail = self.tails[number]
        if end < begin < _LATE:
            found = truncated(end, begin)
        elif tail is None:
            found = TailVerdict(Agreement.UNKNOWN, _UNREAD)
        else:
            found = judge(tail, place, rules, begin)
        return PartitionAudit(
            number,
            found.verdict,
            found.why,
            end,
            found.last,
            found.seq_id,
            found.left_out,
        )


def look(sink: AuditedSink) -> list[TopicSight]:
    """Look at the topics of a sink; those that never existed are left out.

    Raises a WalstreamError where no broker answers.
    """
    client = sink.topics.client
    Whereabouts(client, sink.confined).look(_ANSWER_S)
    with (
        TailReader(client) as reader,
        closing(_topics(sink)) as topics,
    ):
        # one that may not be seen is not listed, which is no proof that it is gone
        asked = reader.topics().keys() | sink.stored.topics.keys()
        found = topics.describe(name for name in sink.names if name in asked)
        wanted = [name for name in found if name not in sink.unnamed]
        bounds = reader.bounds(wanted)
        tails = reader.look(bounds, LOOK_BACK)
        told = [name for name in wanted if name not in sink.stored.eras]
        eras = reader.eras({one: bounds[one] for one in bounds if one.topic in told})
    return [
        _sight(sink, name, found.get(name), bounds, {**tails, **_empty(bounds)}, eras)
        for name in sorted(sink.names)
        if name in found or name in sink.stored.topics
    ]


def _topics(sink: AuditedSink) -> Topics:
    nothing = Creation(allowed=False)
    client, confined = sink.topics.client, sink.confined
    return Topics(client, nothing, lambda _: None, confined=confined)


def _empty(bounds: Mapping[Partition, OffsetBounds]) -> dict[Partition, Tail]:
    return {one: Tail() for one, where in bounds.items() if where.first >= where.end}


def _sight(  # noqa: PLR0913, PLR0917 - what was found of it
    sink: AuditedSink,
    name: str,
    found: Topic | None,
    bounds: Mapping[Partition, OffsetBounds],
    tails: Mapping[Partition, Tail],
    eras: Mapping[Partition, Tail],
) -> TopicSight:
    stored = sink.stored.topics.get(name)
    if found is None or name in sink.unnamed:
        return TopicSight(name, found, stored, sink.unnamed.get(name, ""))
    if stored is not None:
        found.lay_out(stored.layout)
    parts = [Partition(name, number) for number in range(found.partitions)]
    era = _Era.of(sink, found, bounds, eras)
    why = "another sink writes there, too" if name in sink.shared else era.why
    return TopicSight(
        name,
        found,
        stored,
        rules=TopicRules(
            era.since,
            sink.why or why,
            is_alone=name not in sink.shared,
            is_named=sink.topics.is_named(name),
        ),
        begins=era.begins,
        bounds=[bounds.get(one, OffsetBounds(0, 0)) for one in parts],
        tails=[tails.get(one) for one in parts],
    )


@dataclass(frozen=True, slots=True)
class _Era:
    """Era of a topic, as a start would find it."""

    begins: list[int]
    since: int = 0
    why: str = ""

    @classmethod
    def of(
        cls,
        sink: AuditedSink,
        found: Topic,
        bounds: Mapping[Partition, OffsetBounds],
        told: Mapping[Partition, Tail],
    ) -> "_Era":
        rules = rules_of(found, sink.topics.rules)
        parts = [Partition(found.name, number) for number in range(found.partitions)]
        era = sink.stored.eras.get(found.name)
        stored = sink.stored.topics.get(found.name)
        nowhere = [0] * found.partitions
        if era is None:
            # who sent by others may have records on their way
            others = any(
                one not in told or told[one].is_of_others(rules)
                for one in parts
                if one in bounds and bounds[one].first < bounds[one].end
            )
            tails = [told.get(one, Tail()) for one in parts]
            if all(one.era != rules for one in tails):
                return cls(nowhere, why=_NO_ERA)
            begins = [one.era_offset if one.era == rules else _LATE for one in tails]
            return cls(begins, why=_NO_ERA if others else "")
        same = stored is not None and not _loss(found, stored)
        fits = len(era.begins) == found.partitions
        begins = era.begins if same and fits else nowhere
        if not era.rules:
            return cls(begins, why=_ENDED)
        if era.rules != rules or not fits:
            return cls(begins, era.since, _CHANGED)
        return cls(begins, era.since)


def _loss(found: Topic, stored: StoredTopic | None) -> str:
    """Return what a topic has lost, for sure; "" where that is nothing."""
    if stored is None:
        return ""
    if created_again(_as_stored(found), stored):
        return _AGAIN
    if found.partitions < stored.partitions:
        return (
            f"the topic has {found.partitions} partitions, and had"
            f" {stored.partitions}: what was delivered to the others is gone"
        )
    return ""


def _as_stored(found: Topic) -> StoredTopic:
    """Return a topic as a state folder would have it."""
    return StoredTopic(found.partitions, found.identity)
