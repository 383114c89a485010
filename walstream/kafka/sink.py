"""The Kafka sink: each op becomes records of its topic, in order."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import ClassVar, Final

from walstream.config.librdkafka import ClientProperties
from walstream.formats.encodings.subject import SchemaId
from walstream.kafka.record_sink import RecordSink
from walstream.kafka.registry.schema_ids import SchemaIds
from walstream.kafka.target import Target
from walstream.kafka.topic import Topic
from walstream.kafka.topics import Topics
from walstream.kafka.transaction_position import DeliveredTransactions
from walstream.op import Kind, LargeOp, ReplicationOp, Table, halves
from walstream.pipeline.ledger import Transaction
from walstream.records.encoding import MAX_TABLES, SinkRules
from walstream.records.record_size import RECORD_OVERHEAD
from walstream.records.router import Router

_TRUNCATE: Final = Kind.TRUNCATE  # an enum's members are slow to look up
_DELETE: Final = Kind.DELETE


class KafkaSink(RecordSink):
    """One sink of one source: its producers, and the topics that it writes to."""

    takes_large: ClassVar = True  # ops with stand-ins, too

    def __init__(  # noqa: PLR0913 - keywords
        self,
        rules: SinkRules,
        router: Router,
        topics: Topics,
        *,
        producer: ClientProperties,
        expected: Iterable[str] = (),
        transactions: DeliveredTransactions | None = None,
        ids: SchemaIds | None = None,
    ) -> None:
        """All is what a RecordSink takes; compiled, it is passed on by name alone."""
        super().__init__(
            rules,
            router,
            topics,
            producer=producer,
            expected=expected,
            transactions=transactions,
            ids=ids,
        )
        self._tombstones = rules.tombstones
        self._targets: dict[Table, Target | None] = {}
        self._met: set[str] = set()  # topics that fit the outbox

    def knows(self, table: Table) -> bool:
        """Return whether a table's topic is known; if not, look for it without waiting.

        Raises what makes that topic unusable.
        """
        topic = self._router.topic(table.schema, table.name)
        if topic is None:
            return True
        if topic not in self._met:
            if not self._topics.have([topic]):
                return False
            self._meet(topic)
            self._met.add(topic)
        return self._ids is None or self.have_ids(table)

    @property
    def has_registry(self) -> bool:
        """Return whether its records have a registry's schemas."""
        return self._ids is not None

    def have_ids(self, table: Table) -> bool:
        """Return whether the ids of a table's schemas are known; else ask for them."""
        target = self._target(table)
        return target is None or self._have_ids(target.aim.parts)

    def ids_of(self, table: Table) -> dict[str, SchemaId]:
        """Return those ids, by the digests of the schemas, for tasks."""
        target = self._target(table)
        if target is None or self._ids is None:
            return {}
        return self._ids.of(target.aim.parts)

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        """Hand over one op: counted in the transaction now, delivered later.

        The op is taken in any case; False: no other before `ready`.
        """
        try:
            target = self._targets[op.table]
        except KeyError:
            target = self._aim(op.table)
        if target is None:
            self._aims.drop(op.table)
            return True
        topic = target.topic
        if topic is None:
            # who hears of ops heard of this one
            again = partial(KafkaSink.send, self, op, transaction)
            self._hold(target, transaction, again)
        else:
            target.meter.ops += 1
            if op.kind is _TRUNCATE:
                self._put_truncate(target, topic, op, transaction)
            elif op.key_changed and self._rules.split_key_updates:
                target.meter.ops += 1  # of two numbers
                self._put_halves(target, topic, op, transaction)
            else:
                self._put_row(target, topic, op, transaction)
        return target.outbox.has_room

    def rows_of(self, op: ReplicationOp) -> int:
        """Return how many records it becomes that are of a row; 0: it is dropped."""
        target = self._target(op.table)
        if target is None or op.kind is _TRUNCATE:
            return 0
        return 2 if op.key_changed and self._rules.split_key_updates else 1

    def _target(self, table: Table) -> Target | None:
        try:
            return self._targets[table]
        except KeyError:
            return self._aim(table)

    def _aim(self, table: Table) -> Target | None:
        if len(self._targets) >= MAX_TABLES:
            self._targets.clear()
        target = None
        if (aim := self._aims.of(table)) is not None:
            self._named.keep_out(aim.route.topic, table)
            topic = None
            if not aim.parts or self._have_ids(aim.parts):
                topic = self._topics.known.get(aim.route.topic)
            outbox = self._outbox_of(aim.route.topic)
            target = Target(aim, topic, outbox)
        self._targets[table] = target
        return target

    def _hold(
        self, target: Target, transaction: Transaction, send: Callable[[], object]
    ) -> None:
        """Send what has a topic that is not known, once it is."""
        name, told = target.aim.route.topic, self._told
        waits = told is not None and told.wait(transaction)

        def found() -> None:
            target.topic = self._topics.known[name]
            send()
            if told is not None and waits:
                told.arrive(transaction)

        self._await(name, target.outbox, transaction, found, target.aim.parts)

    def _put_truncate(
        self,
        target: Target,
        topic: Topic,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        if not self._aims.sends_truncate(op, target.aim):
            return
        value = target.encode(replace(op, partitions=topic.partitions))
        key = target.aim.route.key.table_key
        for partition in range(topic.partitions):
            self._put(target.outbox, topic, key, value, op, transaction, partition)

    def _put_halves(
        self,
        target: Target,
        topic: Topic,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        for half in halves(op):
            self._put_row(target, topic, half, transaction)

    def _put_row(
        self,
        target: Target,
        topic: Topic,
        op: ReplicationOp,
        transaction: Transaction,
    ) -> None:
        if type(op) is LargeOp:
            key = self._put_large(target, topic, op, transaction)
        else:
            key = target.key(op)
            value = target.encode(op)
            self._put(target.outbox, topic, key, value, op, transaction)
        if self._tombstones and op.kind is _DELETE:
            self._put(target.outbox, topic, key, None, op, transaction)

    def _put_large(
        self, target: Target, topic: Topic, op: LargeOp, transaction: Transaction
    ) -> bytes:
        """Do the same, but write no more than what is sent; return the key."""
        key, record = target.large(op)
        size = record.size() + len(key) + RECORD_OVERHEAD
        if size > topic.limit:
            self._park(topic.too_large(op, key, size), transaction)
        else:
            value = record.value()
            self._put(target.outbox, topic, key, value, op, transaction)
        return key

    def _forget(self, gone: set[str]) -> None:
        self._met -= gone
        self._targets.clear()
