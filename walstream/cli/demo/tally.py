"""Records that arrived in Kafka, counted, folded and compared with what was written.

A change counts once, however often it is repeated; rows are rebuilt per key from the
records alone, with values that PostgreSQL did not send taken from the record before.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from walstream.formats.op import decode
from walstream.kafka.topic_reader import TopicRecord
from walstream.op import Kind, ReplicationOp
from walstream.row import NotSent, Value

Key = tuple[str | None, ...]
RowValues = dict[str, Value]  # by column
Rows = dict[Key, RowValues]

_SOURCE_HEADER: Final = "walstream-source"


class DemoChange(NamedTuple):
    table: str
    operation: str  # Insert | Update | Delete
    key: Key


@dataclass(frozen=True, slots=True)
class Arrival:
    """One record, and the row before and after it as the topics tell."""

    op: ReplicationOp
    key: Key
    before: RowValues | None
    after: RowValues | None
    committed_ms: int
    latency_ms: float  # from the commit to the receipt
    repeated: bool
    first_of_producer: bool


class DemoTally:
    """Takes records in each partition's order."""

    def __init__(self) -> None:
        self.delivered: Counter[DemoChange] = Counter()
        self.repeated = 0
        self.latencies: list[tuple[int, float]] = []  # commit and latency, ms
        self._seen: defaultdict[str, set[tuple[int, int]]] = defaultdict(set)
        self._rows: defaultdict[str, Rows] = defaultdict(dict)

    @property
    def total(self) -> int:
        return len(self.latencies)

    def rows(self, table: str) -> Rows:
        return self._rows[table]

    def take(self, record: TopicRecord, received_ms: float) -> Arrival | None:
        """Count and fold one; return None for a tombstone or a Truncate."""
        if record.value is None or record.key is None:
            return None
        op = decode(record.value)
        if op.kind is Kind.TRUNCATE:
            return None
        seen, name = self._seen[record.topic], (op.lsn, op.seq_id)
        repeated = name in seen
        key: Key = tuple(orjson.loads(record.key))
        committed_ms = record.timestamp_ms or 0
        latency_ms = max(received_ms - committed_ms, 0.0)
        before = self._rows[op.table.full_name].get(key)
        if repeated:
            self.repeated += 1
        else:
            seen.add(name)
            self.delivered[DemoChange(op.table.full_name, op.kind.value, key)] += 1
            self.latencies.append((committed_ms, latency_ms))
            self._fold(op, key, before)
        return Arrival(
            op=op,
            key=key,
            before=before,
            after=self._rows[op.table.full_name].get(key),
            committed_ms=committed_ms,
            latency_ms=latency_ms,
            repeated=repeated,
            first_of_producer=any(name == _SOURCE_HEADER for name, _ in record.headers),
        )

    def _fold(self, op: ReplicationOp, key: Key, before: RowValues | None) -> None:
        rows = self._rows[op.table.full_name]
        if op.new is None:
            rows.pop(key, None)
            return
        earlier = before or {}
        rows[key] = {
            name: earlier.get(name, value) if isinstance(value, NotSent) else value
            for name, value in zip(op.table.columns, op.new, strict=True)
        }


@dataclass(frozen=True, slots=True)
class DemoVerdict:
    written: int
    delivered: int
    missing: Counter[DemoChange]  # committed, and in no record
    unwritten: Counter[DemoChange]  # in a record, and never committed
    repeated: int
    tables: int
    rows: int
    unequal: list[tuple[str, Key]]  # rows that the topics tell otherwise

    @property
    def ok(self) -> bool:
        return not (self.missing or self.unwritten or self.unequal)


def judge(
    written: Counter[DemoChange], contents: Mapping[str, Rows], tally: DemoTally
) -> DemoVerdict:
    """Compare the topics with what was written and with what the tables hold."""
    unequal = [
        (table, key)
        for table, rows in contents.items()
        for key in sorted(rows.keys() | tally.rows(table).keys(), key=str)
        if rows.get(key) != tally.rows(table).get(key)
    ]
    return DemoVerdict(
        written=written.total(),
        delivered=tally.delivered.total(),
        missing=written - tally.delivered,
        unwritten=tally.delivered - written,
        repeated=tally.repeated,
        tables=len(contents),
        rows=sum(map(len, contents.values())),
        unequal=unequal,
    )


def percentile(values: Iterable[float], percent: float) -> float:
    """Nearest rank; 0 of nothing."""
    ranked = sorted(values)
    if not ranked:
        return 0.0
    return ranked[max(0, -int(-len(ranked) * percent // 100) - 1)]
