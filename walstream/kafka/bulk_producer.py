"""A task's producer for one sink: every record it takes is reported delivered.

A task that fails sends its chunk again from the start, so that nothing has to be held
in order behind a failure: the first one fails the task.

Readers pass over the rows of a chunk up to the last one they had. So none of its rows
may be in Kafka without those before it: the first record in each partition is
acknowledged before the next is sent (docs/decisions/0108).
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient, WalstreamError
from walstream.kafka.binding_producer import BindingProducer
from walstream.kafka.errors import failure, undelivered
from walstream.kafka.native_producer import NativeProducer, native_producer
from walstream.kafka.oauth_token import prepared
from walstream.kafka.partition_count import PartitionCount
from walstream.kafka.warmup import acquaint
from walstream.pipeline.ledger import Counted

# of each task's producer: a chunk is sent at full speed, and nobody waits for a record;
# few large batches cost the broker less than many
BULK: Final[ClientProperties] = {
    "linger.ms": 100,
    "queue.buffering.max.kbytes": 64 << 10,
}
# what `produce` raises for a record that `send` is to be given
NOT_TAKEN: Final = (BufferError, KeyError, KafkaException)
_POLL_S: Final = 0.1
_TRY_S: Final = 1.0

Headers = list[tuple[str, str | bytes | None]]


class _Placed(Protocol):
    """Message or count, with the offset of a record that was delivered."""

    def offset(self) -> int | None: ...


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
        self._last: dict[int, _Placed] = {}  # by partition
        self.sent = 0  # the caller counts: it may call `produce` itself
        # what `produce` takes behind a partition that took a record
        self.reports: dict[int, Any] = {}
        self._proving: dict[int, Any] = {}  # of those whose first is on its way
        self._fenced: Producer | None = None
        self._client = self._open()
        self._aside = self._callback(-1)
        self.produce = self._produce()

    def _callback(self, partition: int) -> object:
        return self._client.callback(PartitionCount(partition), self)

    def _produce(self) -> Callable[[str, bytes, bytes | None, int, Any], None]:
        """Return what sends a record that is not the first of its partition."""
        produce, standing = self._client.produce, self._standing
        if not standing:
            return produce  # type: ignore[no-any-return]  # of C, or the binding's

        def headed(
            topic: str, value: bytes, key: bytes | None, partition: int, report: object
        ) -> None:
            produce(topic, value, key, partition, report, None, 0, standing)

        return headed

    def begin(self, check: Callable[[], None]) -> None:
        """Start again after a `finish`: nothing is in flight."""
        self._check = check
        self._delivered = self.sent = 0
        self._failed = None
        self._last = {}
        self.reports.clear()  # the next may be another topic's
        self._proving.clear()

    def _open(self) -> BindingProducer | NativeProducer:
        properties = prepared(dict(self._outgoing.producer))
        try:
            if not self._transaction:
                native = native_producer(properties, _unheard)
                if native is not None:
                    return native
                return BindingProducer(properties, _unheard)
            named = {**properties, "transactional.id": self._transaction}
            made = BindingProducer(named, _unheard)
            made.client.init_transactions(60)
            made.client.begin_transaction()
        except KafkaException as error:
            raise failure(
                error.args[0], f"a producer of sink {self._outgoing.sink!r}"
            ) from None
        self._fenced = made.client
        return made

    def acquaint(self, topic: str) -> None:
        """Get ready to send; a producer with a transaction is already."""
        acquaint(self._client, topic)

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
            report = self._proving[partition] = self._callback(partition)
            headers = self._headers
        if more:
            headers = [*headers, *more]
        self._give((topic, value, key, partition, report), headers)

    def send_aside(self, topic: str, value: bytes, key: bytes, partition: int) -> None:
        """Send one record to another topic; it is counted like the others."""
        self.sent += 1
        self._give((topic, value, key, partition, self._aside), self._headers)

    def _give(
        self, record: tuple[str, bytes, bytes | None, int, Any], headers: Headers
    ) -> None:
        while True:
            try:
                self._client.produce(*record, None, 0, headers)
            except BufferError:
                self._check()
                self.serve(_POLL_S)
            except KafkaException as error:  # e.g. of a partition that is not there
                topic, partition = record[0], record[3]
                self.miss(error.args[0], topic, partition)
                self.serve(0)
            else:
                return

    def hear(
        self, transaction: Counted, error: KafkaError | None, message: Message
    ) -> None:
        """Count one delivery. Called by the producer: must not raise."""
        if error is None and message.offset() is not None:
            self.count(transaction, 1, message)
        else:
            self.miss(error, message.topic(), message.partition())

    def count(
        self, transaction: Counted, records: int, last: _Placed | None = None
    ) -> None:
        """Count what is delivered; after the first in a partition others may follow."""
        self._delivered += records
        number = transaction.number if isinstance(transaction, PartitionCount) else -1
        if number in self._proving and self._failed is None:
            self.reports[number] = self._proving.pop(number)
        # of many together the callback itself knows the last one; the binding's message
        # is false where its value is empty
        placed = last if last is not None else self.reports.get(number)
        if placed is not None and number >= 0:
            self._last[number] = placed

    def miss(
        self, error: KafkaError | None, topic: str | None, partition: int | None
    ) -> None:
        """Note that a record is not delivered: a lasting cause before a passing one.

        What is behind the one that a broker refused may be told of before it.
        """
        if self._failed is None or self._failed.retryable:
            found = undelivered(error, topic, partition)
            if self._failed is None or not found.retryable:
                self._failed = found

    @property
    def last(self) -> dict[int, int]:
        """The offset of the last record that was delivered, by partition."""
        return {number: last.offset() or 0 for number, last in self._last.items()}

    def serve(self, wait_s: float, *, flush: bool = False) -> None:
        """Serve delivery reports; `flush`: with no more records to come."""
        try:
            # a flush does not wait for batches to fill
            (self._client.flush if flush else self._client.poll)(wait_s)
            self._client.report(self)
        except KafkaException as error:
            if self._failed is None:
                self._failed = failure(error.args[0], "the producer stopped")
        if self._failed is not None:
            raise self._failed

    def finish(self) -> None:
        """Wait until every record is delivered; raise when one is not."""
        while len(self._client):
            self._check()
            self.serve(_POLL_S, flush=True)
        self.serve(0)
        if self._delivered != self.sent:
            raise Transient(
                f"sink {self._outgoing.sink!r}: {self.sent - self._delivered} of"
                f" {self.sent} records were not reported delivered"
            )
        if self._fenced is not None:
            self._commit(self._fenced)

    def _commit(self, producer: Producer) -> None:
        # at once it would hear of no stop for a quarter of an hour (TRANSACTION)
        while True:
            self._check()
            try:
                producer.commit_transaction(_TRY_S)
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
            self._client.purge()
            self._client.poll(0)
            self._client.report(self)


def _unheard(_error: KafkaError) -> None:
    """Ignore it: what becomes of records is reported."""
