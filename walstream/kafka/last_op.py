"""The last ops of topics: the furthest that readers can have seen.

Read from each partition's end. An offset without an op (a transaction's marker, a
tombstone, a foreign record) needs a look further back. That look and the total time are
bounded.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from walstream.config.librdkafka import ClientProperties
from walstream.errors import WalstreamError
from walstream.formats.debezium.decode import EnvelopeDecoder
from walstream.formats.debezium.position import HEADER, read_header
from walstream.formats.op import decode
from walstream.kafka.offsets import OffsetBounds, Partition
from walstream.kafka.topic_reader import TopicReader, TopicRecord
from walstream.lsn import Lsn
from walstream.telemetry import runtime
from walstream.telemetry.json_types import ShownLsn

_ANSWER_S: Final = 5.0  # for each question to the brokers
_READ_S: Final = 5.0  # for all records
_POLL_S: Final = 0.1
_BACK: Final = (1, 16, 256)  # offsets before the end, tried one after the other
_ORIGIN: Final = "walstream-source"
_ENVELOPES: Final = EnvelopeDecoder()


@dataclass(frozen=True, slots=True)
class LastOp:
    """The op of the highest (lsn, seq_id) of those that stand last in partitions."""

    lsn: ShownLsn
    seq_id: int
    topic: str
    partition: int
    offset: int
    origin: str  # "system_identifier/database/epoch"; "": most records do not say

    def may_be_of(self, origin: str) -> bool:
        return self.origin in {"", origin}


@dataclass(frozen=True, slots=True)
class TopicEnd:
    """End of one topic."""

    topic: str
    partitions: int | None  # null: there is no such topic
    last: LastOp | None
    problem: str = ""  # why that is not known


def topic_ends(
    properties: ClientProperties, topics: Iterable[str], origin: str
) -> list[TopicEnd]:
    """Look at the ends of these topics; what says another origin comes last.

    Raises a WalstreamError where no broker answers.
    """
    wanted = sorted(topics)
    with TopicReader(properties, timeout_s=_ANSWER_S) as reader:
        existing = reader.topics()
        bounds = reader.bounds(topic for topic in wanted if topic in existing)
    found, unread = _read(properties, bounds)
    return [
        TopicEnd(
            topic,
            existing.get(topic),
            _highest((op for op in found.values() if op.topic == topic), origin),
            _problem(topic, existing, unread),
        )
        for topic in wanted
    ]


def highest(ends: Iterable[TopicEnd], origin: str) -> LastOp | None:
    """Find the op that goes furthest, of those that may be of `origin`."""
    ours = (end.last for end in ends if end.last and end.last.may_be_of(origin))
    return max(ours, key=lambda op: (op.lsn, op.seq_id), default=None)


def _problem(
    topic: str, existing: Mapping[str, int], unread: Mapping[Partition, str]
) -> str:
    if topic not in existing:
        return "the topic does not exist"
    problems = [what for partition, what in unread.items() if partition.topic == topic]
    return problems[0] if problems else ""


def _highest(ops: Iterable[LastOp], origin: str) -> LastOp | None:
    return max(
        ops, key=lambda op: (op.may_be_of(origin), op.lsn, op.seq_id), default=None
    )


def _read(
    properties: ClientProperties, bounds: Mapping[Partition, OffsetBounds]
) -> tuple[dict[Partition, LastOp], dict[Partition, str]]:
    """Read the last op of each partition; say why where none was found."""
    deadline = runtime.monotonic() + _READ_S
    found: dict[Partition, LastOp] = {}
    left = {one: where for one, where in bounds.items() if where.first < where.end}
    with TopicReader(properties, timeout_s=_ANSWER_S) as reader:
        for back in _BACK:
            if not left:
                break
            starts = {
                one: max(where.first, where.end - back) for one, where in left.items()
            }
            reader.assign(starts)
            if problem := _read_on(reader, left, found, deadline):
                return found, dict.fromkeys(left.keys() - found.keys(), problem)
            left = {
                one: where
                for one, where in left.items()
                if one not in found and starts[one] > where.first
            }
    return found, dict.fromkeys(left, f"no op among the last {_BACK[-1]} offsets")


def _read_on(
    reader: TopicReader,
    bounds: Mapping[Partition, OffsetBounds],
    found: dict[Partition, LastOp],
    deadline: float,
) -> str:
    """Read to the ends; say what kept from it."""
    while not reader.reached(bounds):
        if runtime.monotonic() > deadline:
            return f"its end could not be read within {_READ_S:.0f} s"
        try:
            records = reader.poll(_POLL_S)
        except WalstreamError as error:
            return str(error.args[0])
        for record in records:
            if (op := _op(record)) is not None:
                found[Partition(record.topic, record.partition)] = op
    return ""


def _op(record: TopicRecord) -> LastOp | None:
    headers = {name: text for name, text in record.headers if text is not None}
    place = _position(record, headers)
    if place is None:
        return None
    origin = headers.get(_ORIGIN, b"")
    return LastOp(
        *place,
        record.topic,
        record.partition,
        record.offset,
        origin.decode("utf-8", "replace"),
    )


def _position(
    record: TopicRecord, headers: Mapping[str, bytes]
) -> tuple[Lsn, int] | None:
    """Return the name of a record's op, as far as the record has walstream's."""
    try:
        if HEADER in headers:
            return read_header(headers[HEADER])
        if record.value is None:
            return None
        op = decode(record.value)
    except ValueError:
        return None
    except WalstreamError:
        return _enveloped(record.value or b"")
    return op.lsn, op.seq_id


def _enveloped(value: bytes) -> tuple[Lsn, int] | None:
    try:
        found = _ENVELOPES.read(value)
    except WalstreamError:
        return None
    return (found.op.lsn, found.op.seq_id) if found and found.exact else None
