"""A task's producer for one sink: every record it takes is reported delivered.

A task that fails sends its chunk again from the start, so that nothing has to be held
in order behind a failure: the first one fails the task.

Readers pass over the rows of a chunk up to the last one they had. So none of its rows
may be in Kafka without those before it: the first record in each partition is
acknowledged before the next is sent (docs/decisions/0108).
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient, WalstreamError
from walstream.kafka.errors import failure, unplaced
from walstream.kafka.oauth_token import prepared
from walstream.kafka.warmup import acquaint

# of each task's producer: a chunk is sent at full speed, and nobody waits for a record;
# few large batches cost the broker less than many
BULK: Final[ClientProperties] = {
    "linger.ms": 100,
    "queue.buffering.max.kbytes": 64 << 10,
}
_POLL_S: Final = 0.1
_TRY_S: Final = 1.0

Headers = list[tuple[str, str | bytes | None]]
Report = Callable[[KafkaError | None, Message], None]


@dataclass(frozen=True, slots=True)
class Outgoing:
    """Properties of a sink's producer; picklable."""

    sink: str
    producer: ClientProperties = field(repr=False)  # complete
    headers: tuple[tuple[str, bytes], ...] = ()  # of the first record of each partition
    standing: tuple[tuple[str, bytes], ...] = ()  # of every record


class BulkProducer:
    """A producer, and the delivery reports of its records."""

    def __init__(
        self, outgoing: Outgoing, check: Callable[[], None], transaction: str = ""
    ) -> None:
        """`check` may end a wait; with a `transaction` an older attempt is fenced."""
        self._outgoing = outgoing
        self._check = check
        self._transaction = transaction
        self._headers: Headers = [*outgoing.headers, *outgoing.standing]
        self._standing: Headers = list(outgoing.standing)
        self._delivered = 0
        self._failed: WalstreamError | None = None
        self._last: dict[int, Message] = {}  # by partition
        self.sent = 0  # the caller counts: it may call `produce` itself
        self.reports: dict[int, Report] = {}  # by partition that took a record
        self._proving: set[int] = set()  # partitions whose first is on its way
        self._producer = self._open()
        self.produce: Callable[..., None] = self._producer.produce
        if self._standing:
            self.produce = partial(self.produce, headers=self._standing)

    def begin(self, check: Callable[[], None]) -> None:
        """Start again after a `finish`: nothing is in flight."""
        self._check = check
        self._delivered = self.sent = 0
        self._failed = None
        self._last = {}
        self.reports.clear()  # the next may be another topic's
        self._proving.clear()

    def _open(self) -> Producer:
        properties = dict(self._outgoing.producer)
        if self._transaction:
            properties["transactional.id"] = self._transaction
        logger = logging.getLogger("librdkafka")
        try:
            producer = Producer(
                {**prepared(properties), "error_cb": lambda _error: None}, logger=logger
            )
            if self._transaction:
                producer.init_transactions(60)
                producer.begin_transaction()
        except KafkaException as error:
            raise failure(
                error.args[0], f"a producer of sink {self._outgoing.sink!r}"
            ) from None
        return producer

    def acquaint(self, topic: str) -> None:
        """Get ready to send; a producer with a transaction is already."""
        acquaint(self._producer, topic)

    def send(
        self,
        topic: str,
        value: bytes,
        key: bytes | None,
        partition: int,
        more: Headers | None = None,
    ) -> None:
        """Send one record, with headers if it is the first; wait for room.

        The next one in its partition waits until the first is acknowledged.
        """
        headers = self._standing
        while partition in self._proving:
            self._check()
            self.serve(_POLL_S, flush=True)
        report = self.reports.get(partition)
        if report is None:
            self._proving.add(partition)
            report = partial(self._report_first, partition)
            headers = self._headers
        if more:
            headers = [*headers, *more]
        self._give((topic, value, key, partition, report), headers)

    def send_aside(self, topic: str, value: bytes, key: bytes, partition: int) -> None:
        """Send one record to another topic; it is counted like the others."""
        self.sent += 1
        self._give((topic, value, key, partition, self._report_aside), self._headers)

    def _give(
        self, record: tuple[str, bytes, bytes | None, int, Report], headers: Headers
    ) -> None:
        while True:
            try:
                topic, value, key, partition, report = record
                self.produce(topic, value, key, partition, report, headers=headers)
            except BufferError:
                self._check()
                self.serve(_POLL_S)
            else:
                return

    def _report_first(
        self, partition: int, error: KafkaError | None, message: Message
    ) -> None:
        """Count the first delivery in a partition: others may follow it."""
        self._report(partition, error, message)
        if self._failed is None:
            self.reports[partition] = partial(self._report, partition)
            self._proving.discard(partition)

    def _report_aside(self, error: KafkaError | None, message: Message) -> None:
        if error is None and message.offset() is not None:
            self._delivered += 1
        else:
            self._fail(f"{message.topic()!r}", error)

    def _report(
        self, partition: int, error: KafkaError | None, message: Message
    ) -> None:
        """Count one delivery. Called by the producer: must not raise."""
        if error is None and message.offset() is not None:
            self._delivered += 1
            self._last[partition] = message
        else:
            self._fail(f"{message.topic()!r} partition {partition}", error)

    def _fail(self, where: str, error: KafkaError | None) -> None:
        if self._failed is None:
            doing = f"delivering to {where}"
            self._failed = unplaced(doing) if error is None else failure(error, doing)

    @property
    def last(self) -> dict[int, int]:
        """The offset of the last record that was delivered, by partition."""
        return {
            partition: message.offset() or 0
            for partition, message in self._last.items()
        }

    def serve(self, wait_s: float, *, flush: bool = False) -> None:
        """Serve delivery reports; `flush`: with no more records to come."""
        try:
            # a flush does not wait for batches to fill
            (self._producer.flush if flush else self._producer.poll)(wait_s)
        except KafkaException as error:
            if self._failed is None:
                self._failed = failure(error.args[0], "the producer stopped")
        if self._failed is not None:
            raise self._failed

    def finish(self) -> None:
        """Wait until every record is delivered; raise when one is not."""
        while len(self._producer):
            self._check()
            self.serve(_POLL_S, flush=True)
        self.serve(0)
        if self._delivered != self.sent:
            raise Transient(
                f"sink {self._outgoing.sink!r}: {self.sent - self._delivered} of"
                f" {self.sent} records were not reported delivered"
            )
        if self._transaction:
            self._commit()

    def _commit(self) -> None:
        # at once it would hear of no stop for a quarter of an hour (TRANSACTION)
        while True:
            self._check()
            try:
                self._producer.commit_transaction(_TRY_S)
            except KafkaException as error:
                if not error.args[0].retriable():
                    raise failure(error.args[0], "committing a chunk") from None
            else:
                return

    def abandon(self) -> None:
        """Drop what is in flight and raise nothing: there is an error already.

        Dropping records in flight may end an idempotent producer; the next poll would
        raise that as an error that no retry can cure.
        """
        with suppress(KafkaException):
            self._producer.purge()
            self._producer.poll(0)
