"""One sink of a chained source: records as they came, into the partition they were in.

Which topics those are is `target_topics`' business; sending is the outbox's.
"""

from collections.abc import Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

import structlog

from walstream.config import KafkaSinkConfig
from walstream.config.librdkafka import ClientProperties
from walstream.errors import NO_REPAIR, RecordRefused, Restart, WalstreamError
from walstream.kafka.errors import SizeRefused
from walstream.kafka.freeze_clock import TurnClock, stood_still
from walstream.kafka.offsets import Partition
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.probe import Asking
from walstream.kafka.producer_config import hurries
from walstream.kafka.size_dispute import SizeDispute
from walstream.kafka.topic import Topic
from walstream.kafka.topic_reader import TopicRecord
from walstream.pipeline.outage import Outage
from walstream.pipeline.ports import StateStore
from walstream.records.oversize import widen
from walstream.records.record_size import RECORD_OVERHEAD, Headers
from walstream.records.router import Router
from walstream.sources.kafka.envelope import (
    SOURCE_HEADER,
    Header,
    Table,
    source_in,
    timestamp,
)
from walstream.sources.kafka.lease import RateWindow
from walstream.sources.kafka.metrics import Lasting
from walstream.sources.kafka.offset_ledger import Portion
from walstream.sources.kafka.partition_producers import (
    PARTS,
    PartitionProducers,
    UpstreamPartition,
)
from walstream.sources.kafka.relay_fit import RelayFit
from walstream.sources.kafka.target_topics import ANY, TargetTopics
from walstream.sources.report import SinkReport
from walstream.telemetry import runtime
from walstream.telemetry.fields import SINK, TABLE, TOPIC
from walstream.telemetry.meter import SinkMeter, TableMeter

_log = structlog.get_logger()


@dataclass(slots=True, eq=False)
class RelayTarget:
    """Target of one table's records, of topics of one size."""

    topic: Topic | None  # None: nowhere, they are dropped and counted
    table: str
    meter: TableMeter


class RelaySink:
    """One producer's life, and the topics that it writes to."""

    def __init__(  # noqa: PLR0913 - keywords
        self,
        name: str,
        config: KafkaSinkConfig,
        router: Router,
        positions: StateStore,
        lasting: Lasting,
        *,
        fenced: PartitionProducers | None = None,
    ) -> None:
        """`lasting` is what earlier outlets of the sink knew.

        With `fenced` all is written in Kafka transactions.
        """
        self.name = name
        self._config = config
        self._router = router
        self.verbose = config.verbose
        self._lasting = lasting
        compacted = frozenset({fenced.topic} if fenced else ())
        self._topics = TargetTopics(name, config, positions, compacted)
        self._dispute = SizeDispute(self._topics)
        self._aims: dict[tuple[Table, int], RelayTarget] = {}
        self._outbox: OrderedProducer | PartitionProducers | None = None
        self._fenced = fenced
        self._fit = RelayFit(lasting)
        self._clock = TurnClock()
        self._leash = lasting.leash
        self._window = RateWindow(lasting.leash.give_up_s)
        self._quota = 1.0  # bytes that may be put before the next `serve`
        self._redated: set[str] = set()  # topics for which that was said
        self.meter = SinkMeter()
        self._asking = Asking(self)

    def serve(self) -> bool:
        """Serve delivery reports, send what is held; return whether there is room.

        Raises what stops this producer for good: nothing is sent after that.
        """
        if self._outbox is None:
            if not self._topics.located:
                return False  # a producer would go wherever brokers say they are
            given: ClientProperties = {
                **self._leash.properties(self._config.producer),
                **self._config.producer,
            }
            hurry = hurries(given)
            fenced = self._fenced
            properties = self._fit.properties(given, 1 if fenced is None else PARTS)
            if fenced is None:
                self._outbox = OrderedProducer(
                    self.name, properties, self.meter, hurries=hurry
                )
            elif fenced.begin(self._topics, properties, self.meter):
                self._outbox = fenced
            else:
                return False
        still_ms = self._clock.turn()
        if still_ms > self._leash.frozen_after_ms:
            # the group may have given the partitions to another member meanwhile, and
            # what was fetched before would come next
            self._outbox.close(0.0)  # before a poll lets librdkafka send more of it
            raise stood_still(still_ms)
        try:
            room = self._outbox.serve()
        except SizeRefused as refused:
            self._dispute.look(refused)
            return False
        self._quota = self._window.quota(
            runtime.monotonic(), self.meter.records, self._outbox.in_flight
        )
        return room and self._quota > 0

    def take(self, assigned: Iterable[UpstreamPartition]) -> None:
        """Begin with partitions that the group assigned."""
        if self._fenced is not None:
            for each in assigned:
                self._fenced.take(each)

    def leave(self, places: Collection[Partition]) -> None:
        """End with partitions of which all is delivered."""
        if self._fenced is not None:
            self._fenced.leave(places)

    @property
    def has_room(self) -> bool:
        """Return whether one more record would be taken, and delivered in its time."""
        return self._outbox is not None and self._outbox.has_room and self._quota > 0

    @property
    def in_flight(self) -> int:
        return self._outbox.in_flight if self._outbox is not None else 0

    @property
    def waiting(self) -> bool:
        """Return whether it waits for Kafka."""
        outbox = self._outbox
        return outbox is None or outbox.unreachable or self._topics.away

    @property
    def outage(self) -> Outage | None:
        """Why Kafka does not answer, as far as it is known."""
        asked = [] if self._outbox is None else [self._outbox.outage]
        return next(filter(None, [*asked, *self._topics.outages]), None)

    def report(self) -> SinkReport:
        """Return the figures of this moment."""
        return SinkReport(
            waiting=self.waiting,
            outage=self.outage if self.waiting else None,
            in_flight=self.in_flight,
            dropped=self._lasting.dropped,
            tables=self._lasting.tables,
            records=self.meter.records,
            errors=self.meter.errors,
        )

    def aim(self, table: Table, partitions: int) -> RelayTarget | None:
        """Find where a table's records go, out of a topic of so many partitions.

        None: that is not known yet; ask again. Raises what makes the topic unusable.
        """
        found = self._aims.get((table, partitions))
        if found is None:
            name = self._router.topic(*table)
            topic = None
            if name is not None:
                topic = self._find(name, partitions)
                if topic is None:
                    return None
                if self._outbox is not None:
                    self._outbox.acquaint(name)
            name = ".".join(filter(None, table))
            found = RelayTarget(topic, name, self.meter.tables.of(name))
            self._aims[table, partitions] = found
        return found

    def _find(self, name: str, partitions: int) -> Topic | None:
        topic = self._topics.find(name, partitions)
        if topic is None:
            return None
        self._fit.check(topic)
        return topic

    def keep_from(self, identities: Iterable[str]) -> None:
        """Take the ids of the topics that are read: none may be written to."""
        self._topics.keep_from(identities)

    def put(
        self, aim: RelayTarget, record: TopicRecord, source: str, portion: Portion
    ) -> None:
        """Send a record as it is; `source` is what its partition's records come from.

        It is taken in any case, and counted in the portion.
        """
        topic = aim.topic
        if topic is None:
            self._drop(aim.table)
            return
        written = topic  # as its producer knows it
        if self._fenced is not None:
            if self._fenced.has(record):
                return
            # one that left the partition may never have committed its first record
            written, _ = self._fenced.lane(record, topic)
        aim.meter.ops += 1
        headers = record.headers
        first = written.begins(record.partition)
        if first and source and source_in(headers) is None:
            headers = (*headers, (SOURCE_HEADER, source.encode()))
        self._put(topic, record, record.partition, headers, portion)

    def find_aside(self, name: str) -> Topic | None:
        """Find a topic of any size, for records that are no op; None: ask again."""
        return self._find(name, ANY)

    def put_aside(
        self,
        topic: Topic,
        record: TopicRecord,
        headers: Sequence[Header],
        portion: Portion,
    ) -> None:
        """Send a record that is not an op, with these headers beside its own."""
        if self._fenced is not None and self._fenced.has(record):
            return
        partition = record.partition % topic.partitions
        self._put(topic, record, partition, (*record.headers, *headers), portion)

    def _put(
        self,
        topic: Topic,
        record: TopicRecord,
        partition: int,
        headers: Sequence[Header],
        portion: Portion,
    ) -> None:
        if self._outbox is None:
            raise Restart("the sink was not ready")
        if topic.limit > self._fit.largest:
            self._fit.check(topic)  # it takes more than when it was found
        self._check_size(topic, record, headers)
        stamp = timestamp(record.timestamp_ms, self._clock.now_ms, topic.retention_ms)
        if stamp != (record.timestamp_ms or 0):
            self._say_redated(topic.name)
        size = len(record.value or b"") + RECORD_OVERHEAD
        self._quota -= size
        self._window.put(size)
        passed: Headers | None = list(headers) if headers else None
        outbox = self._outbox
        if isinstance(outbox, PartitionProducers):
            topic, outbox = outbox.lane(record, topic)
        outbox.put(topic, record.value, record.key, partition, stamp, portion, passed)

    def _check_size(
        self, topic: Topic, record: TopicRecord, headers: Sequence[Header]
    ) -> None:
        size = len(record.value or b"") + len(record.key or b"") + RECORD_OVERHEAD
        if headers:
            size += sum(len(name) + len(text or b"") + 8 for name, text in headers)
        if size > topic.limit:
            raise RecordRefused(
                f"the record of {record.topic!r} partition {record.partition} at offset"
                f" {record.offset} has {size} bytes, topic {topic.name!r} takes"
                f" {topic.limit}",
                hint=f"{widen(topic.name, topic.advice)}; then: walstream run",
                repair=NO_REPAIR
                if topic.advice
                else self._topics.tools.set(
                    "walstream run", max_message_bytes=size
                ).of_topic(topic.name),
            )

    def _say_redated(self, topic: str) -> None:
        if topic not in self._redated:
            self._redated.add(topic)
            _log.warning(
                "records are older than the topic keeps them, or far ahead of the "
                "clock: they get a timestamp that the topic accepts",
                **{TOPIC: topic, SINK: self.name},
            )

    def _drop(self, table: str) -> None:
        if self._lasting.drop(table):
            _log.warning(
                "table has no topic: its records are dropped and counted",
                **{TABLE: table, SINK: self.name},
            )

    def ask(self) -> Future[None]:
        """Ask whether the brokers answer."""
        return self._topics.ask()

    def look_at_topics(self) -> None:
        """See once a minute whether the topics are still what they were."""
        if self._outbox is not None:
            self._asking.look(self._outbox)
            self._topics.look(self._fail)

    def _fail(self, error: WalstreamError) -> None:
        """End with what became of a topic; in the thread that looked."""
        if (outbox := self._outbox) is not None:
            outbox.fail(error)

    def close(self, wait_s: float) -> None:
        """Let what is in flight arrive, so long; then give it up.

        At once where this process was frozen: another member may have sent the same.
        """
        if self._outbox is not None:
            frozen = self._clock.was_frozen(self._leash.frozen_after_ms)
            self._outbox.close(0.0 if frozen else wait_s)
            self._outbox = None
        self._topics.close()

    def give_up(self) -> None:
        """Send no more of what was put, at once."""
        if self._outbox is not None:
            self._outbox.close(0.0)
            self._outbox = None
