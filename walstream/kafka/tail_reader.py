"""Reads back from the ends of partitions: to the stream's last record in each.

What is not an op of the stream (a backfilled row, a transaction's marker, a foreign
record) needs a look further back. The total time is bounded: a partition of which it
was not enough has no last record here, and nothing is left out there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

from walstream.config.librdkafka import ClientProperties
from walstream.errors import TopicLost, WalstreamError
from walstream.formats.debezium.decode import Envelope, EnvelopeDecoder
from walstream.formats.debezium.position import HEADER, read_header
from walstream.formats.op import decode
from walstream.kafka.last_record import LastRecord, digest
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicReader, TopicRecord
from walstream.lsn import Lsn
from walstream.op import CHUNK_BITS, EPOCH_S, Kind, ReplicationOp
from walstream.telemetry import runtime

ERA: Final = "walstream-era"
"""Header of a producer's records, now and then: the rules they were sent by."""
SOURCE: Final = "walstream-source"
"""Header of a producer's first record in each partition: the history that it is of."""
_NO_ERA: Final = "-"
_ANSWER_S: Final = 10.0  # for each question to the brokers
_AGAIN_S: Final = 0.1
_READ_S: Final = 10.0  # for all records
_POLL_S: Final = 0.1
_BACK: Final = (2, 32, 512, 8192, 131_072, 1 << 40)  # offsets before the end, by turns
_BACK_TO_ERA: Final = 8192
LOOK_BACK: Final = _BACK[:4]  # for who does not depend on what he finds
_ENVELOPES: Final = EnvelopeDecoder()


@dataclass(frozen=True, slots=True)
class _Named:
    """The name that a record of the stream tells."""

    lsn: Lsn
    seq_id: int
    commit_ms: int | None  # None: nobody says
    exact: bool
    xid: int = 0
    deletes: bool = False
    streams: bool = True  # else it is a row of a backfill, or of one does not know


_UNNAMED: Final = _Named(0, 0, None, exact=False, streams=False)
A_ROW: Final = (0, -1)
"""Stands for the name of a backfill's row: before those of all ops of a stream."""
_ROW: Final = _Named(*A_ROW, None, exact=False, streams=False)


@dataclass(slots=True)
class Tail:
    """End of one partition, as far as it was read."""

    last: LastRecord | None = None
    offset: int = -1  # of the first record of its name
    era: str = ""  # the newest that a record tells; "": none does
    era_offset: int = -1
    untimed: tuple[Lsn, int] | None = None  # the last name, where none tells its time
    origin: str = ""  # the newest that a record tells
    strange: int = -1  # offset of the newest record that walstream did not write
    reaches: bool = False  # was it read from the first record on?
    ending: int = 0  # bytes at a value's end that tell when it was made
    _key: bytes | None = None
    _deletes: bool = False
    _begins: int = -1  # the first offset that was read

    @property
    def name(self) -> tuple[Lsn, int] | None:
        """The name of the last record of the stream; None: none was found."""
        return (self.last.lsn, self.last.seq_id) if self.last else self.untimed

    @property
    def is_whole(self) -> bool:
        """Return whether no record of the last one's name lies before what was read."""
        return self.name is not None and (self.reaches or self.offset > self._begins)

    def is_of_others(self, rules: str) -> bool:
        """Return whether another process sent by other rules, or told none."""
        return self.era != rules and bool(self.era or self.offset >= 0)

    def add(self, record: TopicRecord) -> None:
        """Take in the next record."""
        if self._begins < 0:
            self._begins = record.offset
        headers = {name: text for name, text in record.headers if text is not None}
        buries = record.value is None and HEADER not in headers
        named = None if buries else _named(record, headers)
        if ERA in headers:
            self.era = headers[ERA].decode("ascii", "replace")
            self.era_offset = record.offset
        elif SOURCE in headers and (buries or (named is not None and named.streams)):
            self.era = _NO_ERA  # the first record of a producer that tells none
        if SOURCE in headers:
            self.origin = headers[SOURCE].decode("utf-8", "replace")
        if buries:
            self._bury(record)
        elif named is None:
            self.strange = record.offset
        elif named.streams:
            self._name(record, named)

    def _name(self, record: TopicRecord, named: _Named) -> None:
        last = self.last
        if last and (named.lsn, named.seq_id) == (last.lsn, last.seq_id):
            self.last = _joined(last, record.value)
            return
        self.offset, self._key, self._deletes = record.offset, record.key, named.deletes
        self.last, self.untimed = None, (named.lsn, named.seq_id)
        if named.commit_ms is not None:
            self.last = LastRecord(
                named.lsn,
                named.seq_id,
                named.commit_ms,
                named.exact,
                None
                if record.value is None
                else digest(record.value, exact=named.exact, ending=self.ending),
                buried=record.value is None,
                xid=named.xid,
                ending=self.ending,
            )

    def _bury(self, record: TopicRecord) -> None:
        """Take in a tombstone without a name: that of the Delete before it, if any."""
        if self.last is not None and self._deletes and record.key == self._key:
            self.last = _joined(self.last, None)


def _joined(last: LastRecord, value: bytes | None) -> LastRecord:
    """Add a record of the same name."""
    if value is None:
        return replace(last, buried=True)
    found = digest(value, exact=last.exact, ending=last.ending)
    return replace(last, value=last.value or found)


def _named(record: TopicRecord, headers: Mapping[str, bytes]) -> _Named | None:
    """Return what a record of walstream tells; None: it is another's."""
    if HEADER not in headers and (op := _op(record)) is not None:
        deletes = op.kind is Kind.DELETE
        named = _at(record, op.lsn, op.seq_id, deletes=deletes)
        return _ROW if op.snapshot else named
    if (found := _enveloped(record, headers)) is not None:
        return _in_envelope(found)
    if HEADER not in headers:
        return None
    try:
        lsn, seq_id = read_header(headers[HEADER])
    except ValueError:
        return None
    return _ROW if seq_id >> CHUNK_BITS else _at(record, lsn, seq_id)


def name_of(record: TopicRecord) -> tuple[Lsn, int] | None:
    """Return the name of an op; None: the record does not tell one.

    That of a backfill's row is `A_ROW`.
    """
    headers = {name: text for name, text in record.headers if text is not None}
    named = _named(record, headers)
    return None if named in {None, _UNNAMED} else (named.lsn, named.seq_id)


def _op(record: TopicRecord) -> ReplicationOp | None:
    try:
        return decode(record.value or b"")
    except WalstreamError:
        return None


def _in_envelope(found: Envelope) -> _Named:
    op = found.op
    if op.snapshot:
        return _ROW
    if not found.exact:
        return _UNNAMED
    return _Named(
        op.lsn,
        op.seq_id,
        op.commit_time // 1000 + EPOCH_S * 1000,
        exact=True,
        xid=op.xid,
        deletes=op.kind is Kind.DELETE,
    )


def _at(record: TopicRecord, lsn: Lsn, seq_id: int, *, deletes: bool = False) -> _Named:
    """Return a name that its record's time goes with, unless that is the broker's."""
    commit_ms = None if record.appended else record.timestamp_ms
    return _Named(lsn, seq_id, commit_ms, exact=False, deletes=deletes)


def _enveloped(record: TopicRecord, headers: Mapping[str, bytes]) -> Envelope | None:
    if record.value is None:
        return None
    try:
        return _ENVELOPES.read(record.value, record.key, headers)
    except WalstreamError:
        return None


class TailReader:
    """Reads the ends of partitions, of records that are committed or not."""

    def __init__(self, properties: ClientProperties, ending: int = 0) -> None:
        """Read values without an `ending` that tells when their record was made."""
        self._ending = ending
        self._reader = TopicReader(
            {**properties, "isolation.level": "read_uncommitted"}, timeout_s=_ANSWER_S
        )

    def bounds(self, topics: Iterable[str]) -> dict[Partition, OffsetBounds]:
        """Return where the partitions of topics begin and end now.

        One that was just created may not be known yet by the broker that is asked.
        """
        names = list(topics)
        deadline = runtime.monotonic() + _ANSWER_S
        while True:
            try:
                return self._reader.bounds(names)
            except TopicLost:
                if runtime.monotonic() > deadline:
                    raise
                runtime.sleep(_AGAIN_S)

    def topics(self) -> dict[str, int]:
        """Return every topic of the cluster, with the number of its partitions."""
        return self._reader.topics()

    def last(self, bounds: Mapping[Partition, OffsetBounds]) -> dict[Partition, Tail]:
        """Read back to the last record in each; those without one are left out.

        Nothing below a bound is read.
        """
        tails = self.look(bounds).items()
        return {one: tail for one, tail in tails if tail.last and tail.is_whole}

    def look(
        self,
        bounds: Mapping[Partition, OffsetBounds],
        turns: Iterable[int] = _BACK,
    ) -> dict[Partition, Tail]:
        """Read back likewise, and return what was read of each that is not empty.

        One that is not there could not be read in time; one that is not whole has no
        last record among so many offsets as the last of the `turns` says, or fewer.
        """
        found: dict[Partition, Tail] = {}
        left = {one: where for one, where in bounds.items() if where.first < where.end}
        deadline = runtime.monotonic() + _READ_S
        for back in turns:
            if not left:
                break
            tails = self._read(left, back, deadline)
            if tails is None:
                break
            found |= tails
            for one, tail in tails.items():
                tail.reaches = left[one].end - back <= left[one].first
                if tail.is_whole or tail.reaches:
                    del left[one]
        return found

    def eras(self, bounds: Mapping[Partition, OffsetBounds]) -> dict[Partition, Tail]:
        """Read back as far as an era is told, as a rule."""
        left = {one: where for one, where in bounds.items() if where.first < where.end}
        deadline = runtime.monotonic() + _READ_S
        return self._read(left, _BACK_TO_ERA, deadline) or {}

    def _read(
        self, bounds: Mapping[Partition, OffsetBounds], back: int, deadline: float
    ) -> dict[Partition, Tail] | None:
        """Read so many offsets to each end; None: the time was not enough."""
        if not bounds:
            return {}
        tails = {one: Tail(ending=self._ending) for one in bounds}
        self._reader.assign(
            {one: max(where.first, where.end - back) for one, where in bounds.items()}
        )
        while not self._reader.reached(bounds):
            if runtime.monotonic() > deadline:
                return None
            for record in self._reader.poll(_POLL_S):
                one = Partition(record.topic, record.partition)
                if record.offset < bounds[one].end:
                    tails[one].add(record)
        return tails

    def close(self) -> None:
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
