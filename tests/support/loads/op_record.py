"""Op records as walstream sends them, for tests of who reads them."""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import count

from confluent_kafka import KafkaError, Message, Producer

from walstream.formats.op import OpEncoder
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import Row

ITEM = Table("public", "item", ("id", "n"))


def insert(lsn: int, seq_id: int, row: Row, table: Table = ITEM) -> ReplicationOp:
    return ReplicationOp(Kind.INSERT, table, lsn, seq_id, new=row)


def backfilled(lsn: int, chunk: int, index: int, row: Row) -> ReplicationOp:
    seq_id = (chunk << 32) + index
    return ReplicationOp(Kind.INSERT, ITEM, lsn, seq_id, new=row, snapshot=True)


def truncate(lsn: int, partitions: int, table: Table = ITEM) -> ReplicationOp:
    return ReplicationOp(Kind.TRUNCATE, table, lsn, 0, partitions=partitions)


@dataclass
class Feed:
    """Writes to one topic."""

    bootstrap: str
    topic: str
    lsns: Iterable[int] = field(default_factory=lambda: count(1000, 8))

    def __post_init__(self) -> None:
        self._lsns = iter(self.lsns)
        self._producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,  # a retried batch keeps its place
                "linger.ms": 2,
            }
        )

    def next_lsn(self) -> int:
        return next(self._lsns)

    def send(self, op: ReplicationOp, partition: int = 0, source: str = "") -> None:
        row = op.new or op.old
        key = json.dumps([row[0] if row else op.table.full_name]).encode()
        self.send_raw(OpEncoder(op.table).encode(op), partition, key, source)

    def send_raw(
        self,
        value: bytes | None,
        partition: int = 0,
        key: bytes = b"k",
        source: str = "",
    ) -> None:
        headers: list[tuple[str, str | bytes | None]] = []
        if source:
            headers = [("walstream-source", source.encode())]
        while True:
            try:
                self._producer.produce(
                    self.topic,
                    value,
                    key,
                    partition,
                    headers=headers,
                    on_delivery=_delivered,
                )
            except BufferError:
                self._producer.poll(0.1)
            else:
                return

    def insert(self, number: int, partition: int = 0, source: str = "") -> None:
        """Send one insert of a transaction of its own."""
        lsn = self.next_lsn()
        self.send(insert(lsn, 0, [str(number), str(lsn)]), partition, source)

    def flush(self) -> None:
        assert self.flushed(30)

    def flushed(self, timeout_s: float) -> bool:
        """Wait for the deliveries; tell whether all came in time."""
        return self._producer.flush(timeout_s) == 0


def _delivered(error: KafkaError | None, _: Message) -> None:
    assert error is None, error
