"""The part of a Kafka sink below its records: producers and topics."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from walstream.config.librdkafka import ClientProperties
from walstream.errors import WalstreamError
from walstream.formats.encodings.subject import FramedPart
from walstream.kafka.errors import SizeRefused
from walstream.kafka.freeze_clock import TurnClock, stood_still
from walstream.kafka.last_record import DeliveredRecords
from walstream.kafka.ordered_producer import OrderedProducer
from walstream.kafka.producer_fit import ProducerFit
from walstream.kafka.producer_pool import ProducerPool
from walstream.kafka.registry.schema_ids import SchemaIds
from walstream.kafka.size_dispute import SizeDispute
from walstream.kafka.topic import Topic
from walstream.kafka.topic_watch import TopicWatch
from walstream.kafka.topics import Topics
from walstream.kafka.transaction_position import DeliveredTransactions
from walstream.lsn import Lsn
from walstream.op import ReplicationOp
from walstream.pipeline.ledger import Transaction
from walstream.pipeline.outage import Outage
from walstream.records.encoding import SinkRules

_CLOSE_WAIT_S: Final = 3.0


class TopicSink:
    """Producers of one sink, and the topics that they write to."""

    def __init__(  # noqa: PLR0913 - keywords
        self,
        rules: SinkRules,
        topics: Topics,
        *,
        producer: ClientProperties,
        expected: Iterable[str],
        transactions: DeliveredTransactions | None,
        ids: SchemaIds | None,
    ) -> None:
        """Look at `expected` topics, or create them, before anything is sent.

        With `transactions` all is sent in Kafka's, with `ids` by a registry's schemas.
        """
        self._rules = rules
        self._ids = ids
        self._topics = topics
        self._expected = [*expected, *([rules.parking] if rules.parking else ())]
        self._awaited: set[str] = set()  # topics that are not known yet
        self._outboxes: ProducerPool | None = None
        self._transactions = transactions
        self._fit = ProducerFit(
            rules.name, rules.meter, producer, transactions, self._known
        )
        self._delivered = DeliveredRecords(rules.name, rules.meter, topics.disown)
        self._clock = TurnClock()
        self._watch = TopicWatch(topics)
        self._dispute = SizeDispute(topics)

    def ready(self) -> bool:
        """Serve delivery reports, send what is held; tell whether there is room.

        Raises what stops this producer for good: nothing is sent after that.
        """
        if self._outboxes is None:
            if not self._topics.have(self._expected):
                return False
            self._forget(set())
            self._outboxes = self._fit.open(self._expected, self._topics.limits)
        self._end_if_frozen(self._outboxes)
        self._look_at_topics(self._outboxes)
        if self._ids is not None:
            self._ids.look()
        try:
            return self._outboxes.serve()
        except SizeRefused as refused:
            self._dispute.look(refused)
            return False

    def flush(self) -> None:
        """Send what waits for others; not what is held, as `ready` does."""
        if self._outboxes is not None:
            self._end_if_frozen(self._outboxes)
            self._outboxes.flush()

    def _end_if_frozen(self, outboxes: ProducerPool) -> None:
        """Raise, and drop what is in flight, where the process stood still.

        Also where nothing is: what its connection still holds would come next.
        """
        still_ms = self._clock.turn()
        if still_ms > self._rules.frozen_after_ms:
            outboxes.close()  # before a poll lets librdkafka send more of it
            raise stood_still(still_ms)

    @property
    def name(self) -> str:
        return self._rules.name

    @property
    def in_flight(self) -> int:
        """Count of records and of the producer's own requests in flight."""
        return outboxes.in_flight if (outboxes := self._outboxes) is not None else 0

    @property
    def waiting(self) -> bool:
        """Return whether it waits for Kafka, or for a schema registry."""
        if self._ids is not None and self._ids.outage is not None:
            return True
        return (outboxes := self._outboxes) is None or outboxes.unreachable

    @property
    def outage(self) -> Outage | None:
        """Reason why Kafka, or a registry, does not answer, as far as known."""
        found = (self._outboxes or self._topics).outage
        return self._ids.outage if found is None and self._ids is not None else found

    @property
    def handler_waits(self) -> bool:
        """Return False: handlers are wrapped around this sink."""
        return False

    @property
    def topics(self) -> dict[str, Topic]:
        """Its topics as they were found, by name."""
        return dict(self._topics.known)

    def proven(self, resume: Lsn) -> Lsn:
        """Return how far the position may go: see `DeliveredRecords`."""
        if self._transactions is not None:
            return self._transactions.proven(resume)
        return self._delivered.proven(resume)

    def close(self) -> None:
        """Wait a while for what is in flight; then drop it.

        Else a broker might take it after what the next producer sends of the same. Of
        a process that was frozen it is dropped at once: another one may have sent what
        comes behind it.
        """
        if (outboxes := self._outboxes) is not None:
            if not self._clock.was_frozen(self._rules.frozen_after_ms):
                outboxes.wait(_CLOSE_WAIT_S)
            self._outboxes = None  # must end nothing: who reports would find it freed
            outboxes.close()  # used after that, so ended here (docs/decisions/0050)
            if outboxes.has_doubts:  # nothing is to be left out at the next start
                self._topics.disown()
        self._topics.close()
        if self._ids is not None:
            self._ids.close()

    def _known(self) -> Mapping[str, Topic]:
        return self._topics.known

    def _outbox_of(self, topic: str) -> OrderedProducer:
        if self._outboxes is None:
            raise WalstreamError("the sink was not ready: a defect")
        return self._outboxes.of(topic)

    def _await(
        self,
        name: str,
        outbox: OrderedProducer,
        transaction: Transaction,
        send: Callable[[], object],
        parts: Sequence[FramedPart] = (),
    ) -> None:
        """Call `send` in turn, once a topic is known; count it until then.

        The ids of these `parts` are known then, too.

        All topics that are waited for are asked for at once.
        """
        transaction.undelivered += 1
        self._awaited.add(name)
        if (known := self._transactions) is not None:
            known.waiting += 1

        def attempt() -> bool:
            if not self._topics.have({name, *self._awaited}):
                return False
            if parts and not self._have_ids(parts):
                return False
            self._awaited.clear()
            self._meet(name)
            if known is not None:
                known.waiting -= 1
            send()  # its records take the place of this attempt
            transaction.undelivered -= 1  # only now: one that is refused stays counted
            return True

        outbox.hold(attempt)

    def _have_ids(self, parts: Sequence[FramedPart]) -> bool:
        """Return whether the ids of schemas are known; if not, they are asked for."""
        return self._ids is None or self._ids.have(parts)

    def _look_at_topics(self, kafka: ProducerPool) -> None:
        """See whether the topics are still what they were."""
        if (gone := self._watch.look(kafka)) is None:
            return
        if gone:
            self._forget(gone)
        self._fit.check(self._topics.limits)

    def _forget(self, gone: set[str]) -> None:
        """Let go of what is kept of topics, of those that are `gone` for sure."""

    def _meet(self, topic: str) -> None:
        self._watch.meet(topic)
        self._fit.check(self._topics.limits)

    def _has(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Return whether a committed transaction has what becomes of an op."""
        return self._transactions is not None and self._transactions.has(
            op, transaction
        )
