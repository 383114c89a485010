"""A Kafka in memory: partitions, deliveries at once or on command, a full queue."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from walstream.formats import ENCODERS
from walstream.formats.context import Context, SourceOrigin
from walstream.lsn import Lsn
from walstream.op import Kind, ReplicationOp, Table, halves
from walstream.pipeline.ledger import Transaction
from walstream.records.partitioner import PARTITIONERS
from walstream.records.router import Router, RoutingRules

_EVERYTHING: Final = RoutingRules({}, "{schema}.{table}", "")


class Delivery(Enum):
    """Time at which a sent record is delivered."""

    AT_ONCE = "in the call that sends it"
    ON_COMMAND = "when `deliver` says so"


@dataclass(frozen=True, slots=True)
class SinkRecord:
    """One record, and the name of the op in it."""

    topic: str
    partition: int
    key: bytes
    value: bytes
    lsn: Lsn
    seq_id: int

    @property
    def name(self) -> tuple[Lsn, int]:
        return self.lsn, self.seq_id


class MemorySink:
    """Routes and encodes as the Kafka sink does; one order a partition.

    `limit` is the queue's size: full, it takes the op at hand and no other before
    `ready`. `on_ready` is called by each `ready`, to deliver or to fail.
    """

    def __init__(
        self,
        router: Router | None = None,
        *,
        partitions: int = 1,
        delivery: Delivery = Delivery.AT_ONCE,
        limit: int | None = None,
        on_ready: Callable[["MemorySink"], None] = lambda _sink: None,
    ) -> None:
        self._router = router or Router("memory", _EVERYTHING)
        self._partitions = partitions
        self._delivery = delivery
        self._limit = limit
        self.name = "memory"
        self._on_ready = on_ready
        self._pending: dict[int, deque[tuple[SinkRecord, Transaction]]] = {}
        self._failure: Exception | None = None
        self._refusing = False
        self.closed = False
        self.unknown: set[str] = set()  # tables, `schema.table`
        self.sent: list[SinkRecord] = []
        self.delivered: list[SinkRecord] = []
        self.dropped: list[ReplicationOp] = []

    def ready(self) -> bool:
        self._on_ready(self)
        if self._failure is not None:
            raise self._failure
        return self._has_room

    @property
    def _has_room(self) -> bool:
        full = self._limit is not None and self.in_flight >= self._limit
        return not full and not self._refusing

    @property
    def in_flight(self) -> int:
        return sum(map(len, self._pending.values()))

    @property
    def waiting(self) -> Sequence[int]:
        """Partitions that have something to deliver."""
        return [partition for partition, queue in self._pending.items() if queue]

    def knows(self, table: Table) -> bool:
        return table.full_name not in self.unknown

    def send(self, op: ReplicationOp, transaction: Transaction) -> bool:
        for half in halves(op) if op.key_changed else (op,):
            self._send(half, transaction)
        return self._has_room

    def _send(self, op: ReplicationOp, transaction: Transaction) -> None:
        route = self._router.route(op.table, SourceOrigin())
        if route is None:
            self.dropped.append(op)
            return
        if op.kind is Kind.TRUNCATE:
            op = replace(op, partitions=self._partitions)
            key, partitions = route.key.table_key, list(range(self._partitions))
        else:
            key = route.key.render(op)
            partitions = [PARTITIONERS["murmur2"](key, self._partitions)]
        value = ENCODERS["op"](op.table, Context()).encode(op)
        for partition in partitions:
            record = SinkRecord(route.topic, partition, key, value, op.lsn, op.seq_id)
            self.sent.append(record)
            transaction.undelivered += 1
            self._pending.setdefault(partition, deque()).append((record, transaction))
            if self._delivery is Delivery.AT_ONCE:
                self.deliver(partition)

    def deliver(self, partition: int) -> SinkRecord:
        """Deliver the oldest record that this partition waits for."""
        record, transaction = self._pending[partition].popleft()
        if not self.closed:
            transaction.undelivered -= 1
            self.delivered.append(record)
        return record

    def deliver_all(self) -> None:
        for partition in self.waiting:
            while self._pending[partition]:
                self.deliver(partition)

    def refuse(self) -> None:
        """Refuse ops until `release`."""
        self._refusing = True

    def release(self) -> None:
        self._refusing = False

    def fail(self, error: Exception) -> None:
        """Fail a delivery: the next `ready` raises, and so does every other."""
        self._failure = error

    def close(self) -> None:
        self.closed = True
        self._pending.clear()
