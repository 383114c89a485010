"""Records that were committed, and that an abort of their producer would lose.

Where a coordinator left out the marker of a commit (see `open_transaction`), the next
marker of the same producer ends that transaction, too. If that is one of an abort, as
where the producer was killed in its next transaction, nobody can read what was
committed, and no stream sends it again: the position covers it. So it is read before an
older producer's transaction is ended, and sent again if it cannot be read after that.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

import structlog
from confluent_kafka import Producer

from walstream.config.librdkafka import ClientProperties
from walstream.errors import Transient, WalstreamError
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.open_ranges import OpenRanges, shown
from walstream.kafka.record_copy import produce_copy
from walstream.kafka.tail_reader import A_ROW, name_of
from walstream.kafka.topic_reader import TopicRecord
from walstream.kafka.transaction_coordinator import TransactionCoordinator
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR

_READ_S: Final = 5.0  # without a record
_MOST_READ_S: Final = 600.0
_POLL_S: Final = 0.1
_AGAIN_S: Final = 0.5
_MOST_BYTES: Final = 64 << 20
_MOST_UNNAMED: Final = 1000  # of a format whose records have no names: none is meant
_DOING: Final = "sending lost records again"
_log = structlog.get_logger()
_RECORD: Final = 200  # bytes of one beside its value

Name = tuple[int, int]
Kept = dict[Partition, list[TopicRecord]]
_Same = tuple[Name | None, bytes | None, bytes | None]


class UnmarkedRecords:
    """Those in open transactions whose names the position covers."""

    def __init__(
        self, client: ClientProperties, coordinator: TransactionCoordinator
    ) -> None:
        """`client` is of a reader, `coordinator` of who sends again."""
        self._ranges = OpenRanges(client, coordinator.is_stopped)
        self._coordinator = coordinator
        self._stopped = coordinator.is_stopped
        self._kept: Kept = {}

    @property
    def are_kept(self) -> bool:
        """Return whether some would be lost, if nobody sent them again."""
        return bool(self._kept)

    def keep(self, partitions: Mapping[str, int], covered: Callable[[], Name]) -> None:
        """Read those that are `covered`, in topics with so many partitions.

        As a rule there are none: an open transaction begins behind the position.
        Brokers that do not answer are waited for: what is ended before they do may be
        lost. Nothing is kept where they refuse to tell, nor of a partition that has no
        leader for long. Raises Transient where it was stopped, and what `covered` does.
        """
        is_told = False
        while bounds := self._ranges.find(partitions, patient=True):
            last = covered()
            try:
                self._kept = self._read(bounds, last)
            except WalstreamError as error:
                self._kept = {}
                if not error.retryable:
                    _log.warning(
                        "what is open cannot be read: what Kafka aborts of it is lost",
                        partitions=shown(bounds),
                        **{ERROR: str(error.args[0])},
                    )
                    return
                if not is_told and not self._stopped():
                    _log.warning(
                        "Kafka does not hand over what is open: it is waited for",
                        partitions=shown(bounds),
                    )
                is_told = True
            else:
                return

    def drop_behind(self, last: Name) -> None:
        """Keep nothing behind this one: it was not delivered, and comes again."""
        kept: Kept = {}
        for one, records in self._kept.items():
            names = (name_of(record) for record in records)
            behind = (at for at, name in enumerate(names) if name and name > last)
            if left := records[: next(behind, len(records))]:
                kept[one] = left
        self._kept = kept

    def send_lost(self, producer: Producer) -> None:
        """Commit again those that cannot be read, though nothing is open before them.

        Others are left to another call. Whoever has what comes behind them is to be
        sent nothing before.
        """
        settled = self._settled()
        lost = {one: records for one, records in settled.items() if records}
        if lost:
            self._send(producer, lost)
        for one in settled:
            del self._kept[one]

    def _send(self, producer: Producer, lost: Kept) -> None:
        _log.warning(
            "Kafka aborted records that it had committed: they are sent again",
            partitions=shown(lost),
            records=sum(map(len, lost.values())),
        )
        with self._coordinator.transaction(_DOING, producer):
            for records in lost.values():
                for record in records:
                    produce_copy(producer, record, self._stopped)
            self._coordinator.answered(_DOING, producer.commit_transaction)

    def _settled(self) -> Kept:
        """Return what is lost where nothing is open, asking until brokers tell.

        At another start nobody knows of these records.
        """
        told, patience_s = "", _READ_S
        while self._kept:
            try:
                seen = self._seen(patience_s)
            except WalstreamError as error:
                if not error.retryable:
                    raise
                if (why := str(error.args[0])) != told:
                    _log.warning(
                        "what Kafka committed cannot be read: it is waited for",
                        partitions=shown(self._kept),
                        **{ERROR: why},
                    )
                told = why
                patience_s = min(2 * patience_s, _MOST_READ_S)
            else:
                return {
                    one: _lost(self._kept[one], found) for one, found in seen.items()
                }
            if self._stopped():
                raise Transient("closed before lost records were looked for")
            runtime.sleep(_AGAIN_S)
        return {}

    def _read(self, bounds: Mapping[Partition, OffsetBounds], last: Name) -> Kept:
        kept: Kept = {}
        if not bounds:
            return kept
        size, unnamed = 0, dict.fromkeys(bounds, 0)
        left = dict(bounds)
        deadline = runtime.monotonic() + _READ_S
        with self._ranges.reader("read_uncommitted") as reader:
            reader.assign({one: where.first for one, where in bounds.items()})
            while left and not reader.reached(left):
                if self._stopped() or runtime.monotonic() > deadline:
                    # nobody knows whether what was not read is covered
                    raise Transient("what is open cannot be read")
                for record in reader.poll(_POLL_S):
                    deadline = runtime.monotonic() + _READ_S
                    one = Partition(record.topic, record.partition)
                    if one not in left or record.offset >= left[one].end:
                        continue
                    name = name_of(record)
                    is_kept = name is not None or _is_tombstone(record, kept.get(one))
                    unnamed[one] += not is_kept
                    if (name or last) > last or unnamed[one] > _MOST_UNNAMED:
                        del left[one]  # what follows comes again
                        reader.drop([one])
                    elif is_kept:
                        kept.setdefault(one, []).append(record)
                        size += len(record.value or b"") + _RECORD
                if size > _MOST_BYTES:
                    _log.warning(
                        "more is open than is kept: what Kafka aborts of it is lost",
                        partitions=shown(left),
                    )
                    break
        return kept

    def _seen(self, patience_s: float) -> dict[Partition, set[_Same]]:
        """Return what of it can be read, where nothing is open by now.

        Also where it was committed again behind what was read before. Raises Transient
        where no record comes for so long: what was aborted is read, and handed to none.
        """
        with self._ranges.reader("read_committed") as reader:
            ends = reader.ends(self._kept)
            bounds = {
                one: OffsetBounds(records[0].offset, ends[one])
                for one, records in self._kept.items()
                if ends[one] > records[-1].offset
            }
            wanted = {one: set(map(_same, self._kept[one])) for one in bounds}
            seen: dict[Partition, set[_Same]] = {one: set() for one in bounds}
            reader.assign({one: where.first for one, where in bounds.items()})
            deadline = runtime.monotonic() + patience_s
            while not reader.reached(bounds):
                if self._stopped() or runtime.monotonic() > deadline:
                    raise Transient("what is committed cannot be read")
                for record in reader.poll(_POLL_S):
                    deadline = runtime.monotonic() + patience_s
                    one = Partition(record.topic, record.partition)
                    if (same := _same(record)) in wanted[one]:
                        seen[one].add(same)
        return seen


def _same(record: TopicRecord) -> _Same:
    """Return what tells a record from others: of rows, which have no name, all of it.

    What was aborted and then committed is there twice.
    """
    name = name_of(record)
    return name, record.key, record.value if name == A_ROW else None


def _lost(kept: Sequence[TopicRecord], seen: Collection[_Same]) -> list[TopicRecord]:
    """Return those that cannot be read, each once; a tombstone goes with its Delete."""
    lost: list[TopicRecord] = []
    known, is_lost = set(seen), False
    for record in kept:
        same = _same(record)
        if same[0] is not None:
            is_lost = same not in known
            known.add(same)
        if is_lost:
            lost.append(record)
    return lost


def _is_tombstone(record: TopicRecord, before: list[TopicRecord] | None) -> bool:
    """Return whether it is that of a Delete, which has no name of its own."""
    if record.value is not None or not before:
        return False
    return before[-1].key == record.key
