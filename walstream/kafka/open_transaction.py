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
from confluent_kafka import Producer

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient, WalstreamError
from walstream.kafka.errors import ProducerLost
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.open_ranges import OpenRanges, shown
from walstream.kafka.record_copy import produce_copy
from walstream.kafka.tail_reader import A_ROW, name_of
from walstream.kafka.topic_reader import TopicRecord
from walstream.kafka.transaction_coordinator import TransactionCoordinator
from walstream.telemetry import runtime

T = TypeVar("T")
Name = tuple[int, int]
"""LSN of the commit record, and seq_id."""
_Open = tuple[Name, TopicRecord | None]
"""The lowest name in an open transaction, and the last record that is delivered."""

_AGAIN_S: Final = 0.2
_MOST_AGAIN_S: Final = 2.0
_BRIEF_S: Final = 2.0  # a position is the last record of a transaction: it ends soon
_READ_S: Final = 10.0  # without a record
_POLL_S: Final = 0.1
_FLUSH_S: Final = 0.5
_SEND_S: Final = 30.0
_DOING: Final = "ending an open transaction"
_SLOW: Final = (
    "Kafka does not hand over what is open in {}: nothing is sent before it is read"
)
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
        self._coordinator = coordinator
        self._stopped = coordinator.is_stopped
        self._longest_s = longest_s
        self._ranges = OpenRanges(client, coordinator.is_stopped)

    @property
    def leaderless(self) -> set[Partition]:
        """Return the partitions that could not be looked at: they had no leader."""
        return self._ranges.leaderless

    def end_position(
        self, topic: str, key: bytes, is_delivered: Callable[[bytes], bool]
    ) -> None:
        """End one that has a position under the key.

        It is committed where what it covers is delivered, and else aborted: then all of
        that is sent again.
        """

        def told(before: TopicRecord | None, record: TopicRecord) -> TopicRecord | None:
            is_one = record.key == key and record.value is not None
            return record if is_one else before

        last = self._read(self._ranges.find({topic: 1}), told)
        # else it is another sink's that is open, in front of one that is committed
        offsets = {one: record.offset for one, record in last.items()}
        for one in self._stuck(offsets, _BRIEF_S):
            if is_delivered(last[one].value or b""):
                self._commit(one, last[one])
            else:
                self._abort([one])

    def end_ops(self, partitions: Mapping[str, int], last: Name) -> None:
        """End those of ops, in topics with so many partitions.

        They are aborted where all of their ops are behind the `last` that is committed,
        and come again. Where one is not, the coordinator has committed it, and to abort
        it would lose it: with a copy of its last record up to there they are committed.
        What is behind that may be of a transaction that was aborted. But not before a
        producer that lives would have ended them: sources of rows may share topics, and
        their names have no common order. Likewise where there are rows of a backfill
        alone, which is asked for no more: they do no harm. What tells no name stays.
        """

        def told(before: _Open | None, record: TopicRecord) -> _Open | None:
            name = name_of(record)
            if name is None:
                return before
            lowest, covered = before or (A_ROW, None)
            if lowest == A_ROW or A_ROW < name < lowest:
                lowest = name
            return lowest, record if name <= last else covered

        found = self._ranges.find(partitions, patient=True)
        try:
            records = self._read(found, told)
        except WalstreamError as error:
            if error.retryable:
                raise
            records = {}  # as where the login may write, and not read
        beyond = {one for one, (lowest, _) in records.items() if lowest > last}
        self._abort(beyond)
        copied = {
            one: record
            for one, (_, record) in records.items()
            if one not in beyond and record is not None
        }
        if copied:
            _log.info(
                "a transaction is open: it is waited for until Kafka would have ended "
                "it, and committed then",
                partitions=shown(copied),
                seconds=self._longest_s,
            )
        within = self._stuck(
            {one: record.offset for one, record in copied.items()}, self._longest_s
        )
        for one in sorted(within):
            self._commit(one, copied[one])
        if left := found.keys() - beyond - copied.keys():
            _log.info(
                "a transaction is open: readers get nothing behind it until it ends "
                "(kafka-transactions.sh find-hanging tells one that does not)",
                partitions=shown(left),
            )

    def _stuck(self, records: Mapping[Partition, int], wait_s: float) -> set[Partition]:
        """Return where records of these offsets are not readable after so long."""
        left, pause = dict(records), _AGAIN_S
        deadline = runtime.monotonic() + wait_s
        while left:
            is_late = runtime.monotonic() > deadline
            counts: dict[str, int] = {}
            for topic, number in left:
                counts[topic] = max(counts.get(topic, 0), number + 1)
            # at last without partitions that have no leader
            try:
                if is_late:
                    found = self._ranges.find(counts, patient=True)
                else:
                    found = self._ranges.look(counts)
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

        They may be many: they are read for as long as they come, and not kept. Raises
        Transient where they do not come, or that was stopped: of none it is known where
        it ends before all are read, and what stays open is not to be written behind.
        """
        found: dict[Partition, T] = {}
        if not bounds:
            return found
        deadline = runtime.monotonic() + _READ_S
        with self._ranges.reader("read_uncommitted") as reader:
            reader.assign({one: where.first for one, where in bounds.items()})
            while not reader.reached(bounds):
                if self._stopped() or runtime.monotonic() > deadline:
                    raise Transient(_SLOW.format(shown(bounds)))
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
        _log.warning(f"{_LEFT}: it is aborted now", partitions=shown(places))
        # who reads what is committed never sees them
        empty = [TopicRecord(*one, -1, b"", None, (), None) for one in sorted(places)]
        for producer in self._producers:
            self._write(producer, empty, producer.abort_transaction)

    def _commit(self, place: Partition, record: TopicRecord) -> None:
        """Commit likewise, with a copy, until the older `record` is readable."""
        _log.warning(f"{_LEFT}: it is committed now", partitions=shown([place]))
        for producer in self._producers:
            self._write(producer, [record], producer.commit_transaction)
            if not self._stuck({place: record.offset}, _BRIEF_S):
                break

    def _write(
        self,
        producer: Producer,
        records: Sequence[TopicRecord],
        end: Callable[[float], object],
    ) -> None:
        """Write a transaction of these; not where another start has taken the id.

        That one ends what is open of it.
        """
        deadline = runtime.monotonic() + _SEND_S
        try:
            with self._coordinator.transaction(_DOING, producer):
                for one in records:
                    produce_copy(producer, one, lambda: self._is_over(deadline))
                while producer.flush(_FLUSH_S):
                    if self._is_over(deadline):
                        break
                self._coordinator.answered(_DOING, end)
        except ProducerLost:
            if producer is self._producers[0]:
                raise

    def _is_over(self, deadline: float) -> bool:
        return self._stopped() or runtime.monotonic() > deadline
