"""Transactions that stay open in a partition, though their coordinator has ended them.

A coordinator ends a transaction by a marker in each of its partitions. Some releases of
Kafka leave out a partition that has no leader just then (KAFKA-20734; 4.3.1 is one), as
where the only broker was frozen. There the transaction stays open: readers get nothing
behind it, and the next one of the same transactional.id would commit its records with
its own. Operators know them as hanging (kafka-transactions.sh find-hanging).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final, TypeVar

import structlog
from confluent_kafka import KafkaException, Producer

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient, WalstreamError
from walstream.kafka import topic_ends
from walstream.kafka.admin_client import admin_client
from walstream.kafka.errors import failure
from walstream.kafka.fencing import answered
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.tail_reader import name_of
from walstream.kafka.topic_reader import TopicReader, TopicRecord
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR

T = TypeVar("T")
Name = tuple[int, int]
"""LSN of the commit record, and seq_id."""

_LOOK_S: Final = 10.0  # a partition without a leader is to hold up nothing for longer
_ANSWER_S: Final = 5.0  # of brokers: who closes the sink waits for it
_AGAIN_S: Final = 0.2
_READ_S: Final = 10.0
_POLL_S: Final = 0.1
_FLUSH_S: Final = 0.5
_SEND_S: Final = 30.0
_MOST_SHOWN: Final = 10
_log = structlog.get_logger()


class OpenTransactions:
    """Finds and ends those of producers whose `init_transactions` has returned.

    So nothing of them is open, as far as their coordinators know.
    """

    def __init__(
        self,
        producers: Sequence[Producer],
        client: ClientProperties,
        stopped: Callable[[], bool],
    ) -> None:
        """Of all of them, what is open is judged alike; `client` is of a reader."""
        self._producers = producers
        self._client = client
        self._stopped = stopped

    def end_position(self, topic: str, key: bytes) -> None:
        """End one that has a position under the key: it was never committed."""
        found = self._found({topic: 1})
        keys = self._read(found, lambda record: record.key == key or None)
        self._abort([one for one, known in keys.items() if known])

    def end_beyond(self, partitions: Mapping[str, int], last: Name) -> None:
        """End those of stream ops, all of them behind the `last` that is committed.

        Of topics with so many partitions. What is not surely such a one stays: it may
        be another producer's, which is under way.
        """
        found = self._found(partitions)
        try:
            names = self._read(found, name_of)
        except WalstreamError as error:
            if error.retryable:
                raise
            names = {}  # as where the login may write, and not read
        beyond = {one for one, told in names.items() if told and min(told) > last}
        if left := found.keys() - beyond:
            _log.info(
                "a transaction is open: readers get nothing behind it until it ends "
                "(kafka-transactions.sh find-hanging tells one that does not)",
                partitions=_shown(left),
            )
        self._abort(beyond)

    def _found(self, partitions: Mapping[str, int]) -> dict[Partition, OffsetBounds]:
        """Return where open transactions begin, and their partitions end."""
        if not partitions:
            return {}
        deadline = runtime.monotonic() + _LOOK_S
        admin = admin_client(self._client, lambda _error: None)
        while not self._stopped():
            try:
                # in this order: what is committed meanwhile is not taken for open
                ends = topic_ends.ends(admin, partitions, timeout_s=_ANSWER_S)
                stable = topic_ends.ends(
                    admin, partitions, stable=True, timeout_s=_ANSWER_S
                )
            except WalstreamError as error:
                if not error.retryable or runtime.monotonic() > deadline:
                    _log.warning(
                        "it is not known whether transactions hang in partitions",
                        **{ERROR: str(error.args[0])},
                    )
                    return {}
                runtime.sleep(_AGAIN_S)
                continue
            return {
                Partition(topic, number): OffsetBounds(first, ends[topic][number])
                for topic, firsts in stable.items()
                for number, first in enumerate(firsts)
                if first < ends[topic][number]
            }
        raise Transient("closed before open transactions were looked for")

    def _read(
        self,
        bounds: Mapping[Partition, OffsetBounds],
        wanted: Callable[[TopicRecord], T | None],
    ) -> dict[Partition, list[T]]:
        """Return what records tell, of partitions that were read to their end."""
        found: dict[Partition, list[T]] = {one: [] for one in bounds}
        if not bounds:
            return found
        deadline = runtime.monotonic() + _READ_S
        properties = {**self._client, "isolation.level": "read_uncommitted"}
        with TopicReader(properties, _ANSWER_S) as reader:
            reader.assign({one: where.first for one, where in bounds.items()})
            while not reader.reached(bounds):
                if self._stopped() or runtime.monotonic() > deadline:
                    return {}
                for record in reader.poll(_POLL_S):
                    told = wanted(record)
                    if told is not None:
                        found[Partition(record.topic, record.partition)].append(told)
        return found

    def _abort(self, places: Collection[Partition]) -> None:
        """Abort a transaction of our own there: its marker ends the older one, too.

        Nobody tells which producer's that was: each of them does.
        """
        if not places:
            return
        _log.warning(
            "Kafka left an aborted transaction open, which kept readers waiting: it is "
            "ended now",
            partitions=_shown(places),
        )
        for producer in self._producers:
            self._abort_in(producer, places)

    def _abort_in(self, producer: Producer, places: Collection[Partition]) -> None:
        doing = "ending an open transaction"
        try:
            producer.begin_transaction()
            for one in places:
                # of an aborted transaction: who reads what is committed never sees it
                producer.produce(one.topic, None, b"", one.number)
        except KafkaException as error:
            raise failure(error.args[0], doing) from error
        deadline = runtime.monotonic() + _SEND_S
        while producer.flush(_FLUSH_S):
            if self._stopped() or runtime.monotonic() > deadline:
                break
        answered(doing, producer.abort_transaction, self._stopped)


def _shown(places: Collection[Partition]) -> str:
    shown = [f"{one.topic}[{one.number}]" for one in sorted(places)[:_MOST_SHOWN]]
    more = len(places) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
