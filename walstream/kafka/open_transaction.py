"""Transactions that stay open in a partition, though their coordinator has ended them.

A coordinator ends a transaction by a marker in each of its partitions. Some releases of
Kafka leave out a partition that has no leader just then (KAFKA-20734; 4.3.1 is one), as
where the only broker was frozen. There the transaction stays open: readers get nothing
behind it, and the next one of the same transactional.id would commit its records with
its own. Operators know them as hanging (kafka-transactions.sh find-hanging).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final, TypeVar

import structlog
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient, WalstreamError
from walstream.kafka import topic_ends
from walstream.kafka.admin_client import admin_client
from walstream.kafka.errors import failure
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.tail_reader import name_of
from walstream.kafka.topic_reader import Headers, TopicReader, TopicRecord
from walstream.kafka.transaction_coordinator import TransactionCoordinator
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR

T = TypeVar("T")
Name = tuple[int, int]
"""LSN of the commit record, and seq_id."""

_LOOK_S: Final = 10.0  # a partition without a leader is to hold up nothing for longer
_ANSWER_S: Final = 5.0  # of brokers: who closes the sink waits for it
_AGAIN_S: Final = 0.2
_MOST_AGAIN_S: Final = 2.0
_BRIEF_S: Final = 2.0  # a position is the last record of a transaction: it ends soon
_READ_S: Final = 10.0  # without a record
_POLL_S: Final = 0.1
_FLUSH_S: Final = 0.5
_SEND_S: Final = 30.0
_MOST_SHOWN: Final = 10
_DOING: Final = "ending an open transaction"
_LEFT: Final = "Kafka left a transaction open, which kept readers waiting"
_log = structlog.get_logger()


class OpenTransactions:
    """Finds and ends those of producers whose `init_transactions` has returned.

    So nothing of them is open, as far as their coordinators know.
    """

    def __init__(
        self,
        producers: Sequence[Producer],
        client: ClientProperties,
        coordinator: TransactionCoordinator,
        longest_s: float,
    ) -> None:
        """Of all of them, what is open is judged alike; `client` is of a reader.

        `longest_s` is how long a transaction of a producer that lives may last.
        """
        self._producers = producers
        self._client = client
        self._coordinator = coordinator
        self._stopped = coordinator.is_stopped
        self._longest_s = longest_s
        self._asks: AdminClient | None = None
        self.leaderless: set[Partition] = set()
        """Partitions that could not be looked at: they had no leader."""

    def end_position(
        self, topic: str, key: bytes, is_delivered: Callable[[bytes], bool]
    ) -> None:
        """End one that has a position under the key.

        It is committed where what it covers is delivered, and else aborted: then all of
        that is sent again.
        """

        def told(
            before: tuple[int, bytes] | None, record: TopicRecord
        ) -> tuple[int, bytes] | None:
            value = record.value if record.key == key else None
            return before if value is None else (record.offset, value)

        last = self._read(self._found({topic: 1}), told)
        # else it is another sink's that is open, in front of one that is committed
        for one in self._stuck({one: at for one, (at, _) in last.items()}, _BRIEF_S):
            at, value = last[one]
            if is_delivered(value):
                self._commit(one, at, key, value)
            else:
                self._abort([one])

    def end_ops(self, partitions: Mapping[str, int], last: Name) -> None:
        """End those of stream ops, in topics with so many partitions.

        They are aborted where all of their ops are behind the `last` that is committed,
        and come again. Where one is not, the coordinator has committed it, and to abort
        it would lose it: with a copy of the last record they are committed. But not
        before a producer that lives would have ended them: sources of rows may share
        topics, and their names have no common order. What tells no name stays.
        """

        def told(
            before: tuple[Name, TopicRecord] | None, record: TopicRecord
        ) -> tuple[Name, TopicRecord] | None:
            name = name_of(record)
            if name is None:
                return before
            return (name if before is None else min(name, before[0])), record

        found = self._found(partitions)
        try:
            records = self._read(found, told)
        except WalstreamError as error:
            if error.retryable:
                raise
            records = {}  # as where the login may write, and not read
        beyond = {one for one, (lowest, _) in records.items() if lowest > last}
        self._abort(beyond)
        copied = {
            one: record for one, (_, record) in records.items() if one not in beyond
        }
        within = self._stuck(
            {one: record.offset for one, record in copied.items()}, self._longest_s
        )
        for one in within:
            record = copied[one]
            self._commit(
                one,
                record.offset,
                record.key,
                record.value,
                record.timestamp_ms,
                record.headers,
            )
        if left := found.keys() - beyond - copied.keys():
            _log.info(
                "a transaction is open: readers get nothing behind it until it ends "
                "(kafka-transactions.sh find-hanging tells one that does not)",
                partitions=_shown(left),
            )

    def _found(self, partitions: Mapping[str, int]) -> dict[Partition, OffsetBounds]:
        """Return where open transactions begin, and their partitions end."""
        if not partitions:
            return {}
        deadline = runtime.monotonic() + _LOOK_S
        while not self._stopped():
            is_late = runtime.monotonic() > deadline
            try:
                found = self._look(partitions)
            except WalstreamError as error:
                # of a partition without a leader librdkafka says that it is unknown
                known = self.leaderless
                self.leaderless = topic_ends.leaderless(self._admin(), partitions)
                if (not error.retryable and self.leaderless == known) or is_late:
                    _log.warning(
                        "it is not known whether transactions hang in partitions",
                        **{ERROR: str(error.args[0])},
                    )
                    return {}
            else:
                if not self.leaderless or is_late:
                    if self.leaderless:
                        _log.warning(
                            "partitions have no leader: whether transactions hang "
                            "there is looked at before anything is sent to them",
                            partitions=_shown(self.leaderless),
                        )
                    return found
            self.leaderless = topic_ends.leaderless(self._admin(), partitions)
            runtime.sleep(_MOST_AGAIN_S if self.leaderless else _AGAIN_S)
        raise Transient("closed before open transactions were looked for")

    def _look(self, partitions: Mapping[str, int]) -> dict[Partition, OffsetBounds]:
        wanted = {
            Partition(topic, number)
            for topic, count in partitions.items()
            for number in range(count)
        }
        # in this order: what is committed meanwhile is not taken for open
        with self._reader("read_uncommitted") as reader:
            ends = reader.ends(wanted - self.leaderless)
        with self._reader("read_committed") as reader:
            stable = reader.ends(ends)
        return {
            one: OffsetBounds(first, ends[one])
            for one, first in stable.items()
            if first < ends[one]
        }

    def _reader(self, level: str) -> TopicReader:
        # not an admin client: where a broker stands still, that ends the process
        return TopicReader({**self._client, "isolation.level": level}, _ANSWER_S)

    def _admin(self) -> AdminClient:
        if self._asks is None:
            self._asks = admin_client(self._client, lambda _error: None)
        return self._asks

    def _stuck(self, records: Mapping[Partition, int], wait_s: float) -> set[Partition]:
        """Return where records of these offsets are not readable after so long."""
        left, pause = dict(records), _AGAIN_S
        deadline = runtime.monotonic() + wait_s
        while left:
            is_late = runtime.monotonic() > deadline
            counts: dict[str, int] = {}
            for topic, number in left:
                counts[topic] = max(counts.get(topic, 0), number + 1)
            try:
                found = self._look(counts)
            except WalstreamError as error:
                if is_late or not error.retryable:
                    return set()
            else:
                left = {
                    one: at
                    for one, at in left.items()
                    if one in found and found[one].first <= at
                }
                if is_late:
                    break
            if self._stopped():
                raise Transient("closed before open transactions were ended")
            if left:
                runtime.sleep(pause)
                pause = min(2 * pause, _MOST_AGAIN_S)
        return set(left)

    def _read(
        self,
        bounds: Mapping[Partition, OffsetBounds],
        told: Callable[[T | None, TopicRecord], T | None],
    ) -> dict[Partition, T]:
        """Return what is `told` of each partition, from its records one by one.

        They may be many: they are read for as long as they come, and not kept. Of none
        it is known where that ends before all are read.
        """
        found: dict[Partition, T] = {}
        if not bounds:
            return found
        deadline = runtime.monotonic() + _READ_S
        with self._reader("read_uncommitted") as reader:
            reader.assign({one: where.first for one, where in bounds.items()})
            while not reader.reached(bounds):
                if self._stopped() or runtime.monotonic() > deadline:
                    return {}
                for record in reader.poll(_POLL_S):
                    one = Partition(record.topic, record.partition)
                    if record.offset >= bounds[one].end:
                        continue  # of those that write on there
                    deadline = runtime.monotonic() + _READ_S
                    so_far = told(found.get(one), record)
                    if so_far is not None:
                        found[one] = so_far
        return found

    def _abort(self, places: Collection[Partition]) -> None:
        """Abort a transaction of our own there: its marker ends the older one, too.

        Nobody tells which producer's that was: each of them does.
        """
        if not places:
            return
        _log.warning(f"{_LEFT}: it is aborted now", partitions=_shown(places))
        for producer in self._producers:
            with _failures():
                producer.begin_transaction()
                for one in places:
                    # who reads what is committed never sees it
                    producer.produce(one.topic, None, b"", one.number)
            self._end(producer, producer.abort_transaction)

    def _commit(  # noqa: PLR0913, PLR0917 - a record's parts
        self,
        place: Partition,
        at: int,
        key: bytes | None,
        value: bytes | None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> None:
        """Commit likewise, with one record, until the older one `at` is readable."""
        _log.warning(f"{_LEFT}: it is committed now", partitions=_shown([place]))
        for producer in self._producers:
            with _failures():
                producer.begin_transaction()
                producer.produce(
                    place.topic,
                    value,
                    key,
                    place.number,
                    timestamp=timestamp_ms or 0,
                    headers=[*headers],
                )
            self._end(producer, producer.commit_transaction)
            if not self._stuck({place: at}, _BRIEF_S):
                break

    def _end(self, producer: Producer, end: Callable[[float], object]) -> None:
        deadline = runtime.monotonic() + _SEND_S
        while producer.flush(_FLUSH_S):
            if self._stopped() or runtime.monotonic() > deadline:
                break
        self._coordinator.answered(_DOING, end)


@contextmanager
def _failures() -> Iterator[None]:
    try:
        yield
    except KafkaException as error:
        raise failure(error.args[0], _DOING) from error
    except BufferError as error:
        raise Transient(f"{_DOING}: a record finds no room in the queue") from error


def _shown(places: Collection[Partition]) -> str:
    shown = [f"{one.topic}[{one.number}]" for one in sorted(places)[:_MOST_SHOWN]]
    more = len(places) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
