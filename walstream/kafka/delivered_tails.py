"""A look at what a sink's topics have already, before the first record of a stream.

By it the stream leaves that out: a crash repeats nothing. Eras are kept in the
state folder; where that is lost, records tell of themselves by which rules they were
sent. What cannot be read, or is in doubt, is sent again.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import structlog

from walstream.config.librdkafka import ClientProperties
from walstream.errors import WalstreamError
from walstream.kafka import delivery_era, start_report
from walstream.kafka.delivery_era import ERAS, OVER, DeliveryEra, EraDocument, rules_of
from walstream.kafka.delivery_verdict import (
    StreamPlace,
    TailVerdict,
    TopicRules,
    judge,
    truncated,
)
from walstream.kafka.last_record import LastRecord, TopicTails
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.tail_reader import Tail, TailReader
from walstream.kafka.topic import Topic
from walstream.lsn import NEVER, Lsn, show
from walstream.pipeline.ports import StateStore
from walstream.telemetry.fields import ERROR, HINT, SINK

_MOST_FAILURES: Final = 10
_NOWHERE: Final = OffsetBounds(0, 0)
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class StreamStart:
    """The point at which a stream begins."""

    resume: Lsn
    flush: Lsn  # the server's: nothing from there on was ever sent
    repeats: bool  # may it send what was sent before?
    until: Lsn = NEVER  # where it ends
    creates: bool = False  # its slot: then no earlier stream was sent what comes


@dataclass(frozen=True, slots=True)
class SinkTopics:
    """One sink, what decides where its records go, and which of its topics count."""

    sink: str
    rules: object  # what JSON can hold
    client: ClientProperties
    counts: Callable[[str], bool]  # by a topic's name: is it this sink's alone?
    origin: str = ""  # what its records say of their source; "": not compared
    is_named: Callable[[str], bool] = lambda _topic: True  # does each tell its name?


@dataclass(slots=True)
class _Found:
    """Topics in one look, by what is known of their eras."""

    rules: dict[str, str] = field(default_factory=dict)
    known: dict[str, DeliveryEra] = field(default_factory=dict)
    new: list[str] = field(default_factory=list)
    late: list[str] = field(default_factory=list)  # new, and perhaps written to before
    unknown: list[str] = field(default_factory=list)
    verdicts: dict[Partition, TailVerdict] = field(default_factory=dict)


class DeliveredTails:
    """Looks at topics when they are found, in the thread that finds them."""

    def __init__(
        self,
        topics: SinkTopics,
        positions: StateStore,
        start: StreamStart,
        reader: Callable[[ClientProperties], TailReader] = TailReader,
    ) -> None:
        self._topics = topics
        self._positions = positions
        self._start = start
        self._reader = reader
        self._failures = 0  # in a row
        self.until = start.until  # no last record from there on counts
        self._has_told = False

    def look(self, topics: Iterable[Topic]) -> None:
        """Set what each topic has; begin its era where it has none.

        Raises Transient where Kafka does not answer; at the tenth time in a row all is
        sent, since a partition without a leader would hold back all others.
        """
        by_name = {one.name: one for one in topics}
        others = [name for name in by_name if not self._topics.counts(name)]
        self.end(*filter(self._goes_on, others))
        for name in others:
            del by_name[name]
        found = self._sorted(by_name)
        asked = [*found.new, *found.unknown]
        if self._start.repeats:
            asked += found.known
        try:
            if asked:
                self._read(by_name, found, asked)
            self._tell(found)
        except WalstreamError as error:
            self._failures += 1
            if error.retryable and self._failures < _MOST_FAILURES:
                raise
            self._leave(found, error)
        self._failures = 0
        for name, topic in by_name.items():
            topic.tell_era(found.rules[name])

    def _sorted(self, topics: Mapping[str, Topic]) -> _Found:
        found = _Found()
        for name, topic in topics.items():
            found.rules[name] = rules = rules_of(topic, self._topics.rules)
            era = self._document(name).read(self._positions)
            if era is None:
                found.unknown.append(name)
            elif era.rules == rules and len(era.begins) == topic.partitions:
                found.known[name] = era
            else:
                found.new.append(name)
                found.late.append(name)
        return found

    def _read(
        self, topics: Mapping[str, Topic], found: _Found, asked: list[str]
    ) -> None:
        with self._reader(self._topics.client) as reader:
            bounds = reader.bounds(asked)
            if self._start.repeats:
                self._recognize(topics, found, bounds, reader)
            else:
                found.new += found.unknown
            begun: dict[str, object] = {}
            for name in found.new:
                ends = _of_topic(topics[name], bounds)
                era = delivery_era.fresh(found.rules[name], self._start.flush, ends)
                begun |= self._document(name).entry(era)
            if begun:
                self._positions.write(begun)
            if self._start.repeats:
                self._set(topics, self._last(topics, found, bounds, reader))

    def _recognize(
        self,
        topics: Mapping[str, Topic],
        found: _Found,
        bounds: Mapping[Partition, OffsetBounds],
        reader: TailReader,
    ) -> None:
        """Go on with eras that only records tell of: the state folder is another."""
        wanted = {
            Partition(name, number): where
            for name in found.unknown
            for number, where in enumerate(_of_topic(topics[name], bounds))
        }
        tails = reader.eras(wanted)
        begun: dict[str, object] = {}
        for name in found.unknown:
            rules, begins, others = found.rules[name], [], False
            for number, where in enumerate(_of_topic(topics[name], bounds)):
                tail = tails.get(Partition(name, number))
                ours = tail is not None and tail.era == rules
                begins.append(tail.era_offset if tail and ours else where.end)
                unread = tail is None and where.first < where.end
                others = others or unread or bool(tail and tail.is_of_others(rules))
            # who sent by others may have records on their way
            era = DeliveryEra(rules, self._start.flush if others else 0, begins)
            found.known[name] = era
            begun |= self._document(name).entry(era)
        if begun:
            self._positions.write(begun)

    def _last(
        self,
        topics: Mapping[str, Topic],
        found: _Found,
        bounds: Mapping[Partition, OffsetBounds],
        reader: TailReader,
    ) -> dict[Partition, LastRecord]:
        wanted = {}
        for name, era in found.known.items():
            for number, where in enumerate(_of_topic(topics[name], bounds)):
                one, begin = Partition(name, number), era.begins[number]
                wanted[one] = OffsetBounds(max(where.first, begin), where.end)
                if where.end < begin and one in bounds:
                    found.verdicts[one] = truncated(where.end, begin)
        last = {}
        for one, tail in reader.last(wanted).items():
            found.verdicts[one] = verdict = self._judge(found, one, tail)
            if verdict.left_out and tail.last and tail.last.lsn < self.until:
                last[one] = tail.last
        return last

    def _judge(self, found: _Found, one: Partition, tail: Tail) -> TailVerdict:
        topics, start = self._topics, self._start
        place = StreamPlace(start.resume, start.flush, topics.origin)
        since = found.known[one.topic].since
        rules = TopicRules(since, is_named=topics.is_named(one.topic))
        return judge(tail, place, rules)

    @staticmethod
    def _set(topics: Mapping[str, Topic], last: Mapping[Partition, LastRecord]) -> None:
        own: dict[str, dict[int, LastRecord]] = {name: {} for name in topics}
        for one, each in last.items():
            own[one.topic][one.number] = each
        for name, topic in topics.items():
            topic.tails = TopicTails(name, own[name]) if own[name] else None

    def _tell(self, found: _Found) -> None:
        """Log what was found: once in any case, and later where it is something."""
        start = self._start
        late = found.late if start.repeats else []
        place = StreamPlace(start.resume, start.flush)
        said = start_report.of(found.verdicts, late, place)
        if said is not None:
            tell = _log.warning if said.is_bad else _log.info
            tell(said.text, **{SINK: self._topics.sink}, **said.fields)
        elif not self._has_told:
            _log.info(
                "Kafka has nothing beyond the position",
                **{SINK: self._topics.sink},
                position=show(start.resume),
            )
        self._has_told = True

    def _leave(self, found: _Found, error: WalstreamError) -> None:
        """Leave nothing out, since it cannot be read what Kafka has."""
        _log.warning(
            "it cannot be read what Kafka has already: a crash repeats records",
            **{SINK: self._topics.sink, ERROR: str(error.args[0]), HINT: error.hint},
        )
        self.end(*found.new, *found.unknown)

    def _goes_on(self, topic: str) -> bool:
        """Return whether an era is kept that another sink's records would fall in."""
        era = self._document(topic).read(self._positions)
        return era is not None and era != OVER

    def end(self, *topics: str) -> None:
        """End the eras of topics: of what they have now, nothing is left out."""
        over: dict[str, object] = {}
        for name in topics:
            over |= self._document(name).entry(OVER)
        if over:
            self._positions.write(over)

    def disown(self) -> None:
        """End all eras of the sink."""
        self._positions.write(delivery_era.ended(self._positions, self._topics.sink))

    def _document(self, topic: str) -> EraDocument:
        return ERAS.of(f"{self._topics.sink}/{topic}")


def _of_topic(
    topic: Topic, bounds: Mapping[Partition, OffsetBounds]
) -> list[OffsetBounds]:
    """Return the bounds of the partitions that a sink writes to, in order."""
    return [
        bounds.get(Partition(topic.name, number), _NOWHERE)
        for number in range(topic.partitions)
    ]
