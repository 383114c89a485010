"""The op as an application handles it: a ReplicationOp, and the record that held it.

Rows are wrapped when they are looked at: most of an op's cost is not paid by a handler
that needs one column.
"""

from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple, Self

from consumer.values import Values
from walstream.formats.debezium.decode import Envelope, Schemas
from walstream.lsn import Lsn, show
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import Row, Value, any_absent


class ConsumerRecord(NamedTuple):
    """A record of Kafka, as it was fetched."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp_ms: int = 0  # of an op: when its transaction committed
    headers: tuple[tuple[str, bytes | None], ...] = ()

    @property
    def timestamp(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp_ms / 1000, UTC)

    def __repr__(self) -> str:
        """Return where it lies; its bytes belong in no log."""
        return f"<{self.topic}[{self.partition}] offset {self.offset}>"


class Op:
    """One change of one row, or the truncation of a table.

    `(lsn, seq_id)` names it, the same in every replay: see `exact`. `new` and `old` are
    the rows; the one that an op does not have is empty, and false in an `if`.
    """

    __slots__ = ("_filled", "_new", "_old", "_op", "record")

    record: ConsumerRecord

    def __init__(self, op: ReplicationOp, record: ConsumerRecord) -> None:
        self._op = op
        self.record = record
        self._new: Values | None = None
        self._old: Values | None = None
        self._filled: frozenset[str] | None = None  # None: nobody kept its values

    @classmethod
    def of(cls, op: ReplicationOp, record: ConsumerRecord) -> "Op":
        """Wrap what `walstream.formats.op.decode` made of a record's value."""
        return cls(op, record)

    @property
    def kind(self) -> Kind:
        return self._op.kind

    @property
    def table(self) -> Table:
        """The table: `schema`, `name`, `full_name` and `columns`."""
        return self._op.table

    @property
    def lsn(self) -> Lsn:
        return self._op.lsn

    @property
    def seq_id(self) -> int:
        return self._op.seq_id

    @property
    def exact(self) -> bool:
        """Return whether `(lsn, seq_id)` is walstream's name of the op, and unique.

        Records that Debezium itself wrote have their row's own LSN instead, and the
        order in the transaction: other ops may have the same, or one that is greater
        although they were committed before.
        """
        return True

    @property
    def snapshot(self) -> bool:
        """Return a backfilled row, which was there before the stream began."""
        return self._op.snapshot

    @property
    def partitions(self) -> int:
        """How many partitions a Truncate went to; 0 for any other op."""
        return self._op.partitions

    @property
    def new(self) -> Values:
        """The row as it is now: of Insert and Update."""
        if self._new is None:
            self._new = Values(self._op.table, self._op.new, self._filled)
        return self._new

    @property
    def old(self) -> Values:
        """The row as it was: of Delete, and of Update where it was sent."""
        if self._old is None:
            self._old = Values(self._op.table, self._op.old)
        return self._old

    @property
    def is_kept(self) -> bool:
        """Return whether `fill` was called: values of its table are kept."""
        return self._filled is not None

    def copied(self) -> Self:
        """Return another one of the same, that may be filled."""
        made = copy(self)
        made._op = replace(self._op)  # noqa: SLF001 - our own
        return made

    def fill(self, values: Mapping[str, str]) -> None:
        """Set values of the new row that were not sent, of those that are known."""
        row, table = self._op.new, self._op.table
        self._filled = (self._filled or frozenset()) | values.keys()
        if values and row is not None:
            self._op.new = [
                values.get(name, value)
                for name, value in zip(table.columns, row, strict=True)
            ]
            self._op.absent = any_absent(self._op.old) or any_absent(self._op.new)
        self._new = None

    def __repr__(self) -> str:
        """Return which op it is; its values belong in no log."""
        return (
            f"<{self.kind.value} {self.table.full_name}"
            f" {show(self.lsn)} {self.seq_id} in {self.record!r}>"
        )


class RegisteredOp(Op):
    """An op of the format `op` whose schema a registry has.

    Without `has_units` that lacks what Connect says of types: dates and times are the
    numbers that stand in the record.
    """

    __slots__ = ("has_units",)

    def __init__(
        self, op: ReplicationOp, record: ConsumerRecord, *, has_units: bool = True
    ) -> None:
        super().__init__(op, record)
        self.has_units = has_units

    @property
    def key_names(self) -> frozenset[str]:
        """Name the row's columns that the record's key has."""
        table = self.table
        return frozenset(table.columns[index] for index in table.key)


class EnvelopeOp(Op):
    """An op that came in an envelope of Debezium.

    `topic_partitions` is told where the order depends on it (`scattered`); 0 is not
    known.
    """

    __slots__ = ("_converted", "_exact", "schemas", "topic_partitions")

    schemas: Schemas | None
    topic_partitions: int
    _converted: bool
    _exact: bool

    @classmethod
    def read(cls, envelope: Envelope, record: ConsumerRecord) -> "EnvelopeOp":
        """Wrap what an envelope says."""
        made = cls(envelope.op, record)
        made._exact = envelope.exact
        made._converted = False
        made.schemas = envelope.schemas
        made.topic_partitions = 0
        return made

    @property
    def exact(self) -> bool:
        return self._exact

    @property
    def scattered(self) -> bool:
        """Return whether ops that have an order with it may lie in other partitions.

        A Truncate has one record. Those without a key Debezium spreads over all
        partitions; walstream does not.
        """
        return self.kind is Kind.TRUNCATE or (
            self.record.key is None and not self.exact
        )

    def convert(self, by_column: Mapping[str, Callable[[str], Value]]) -> None:
        """Rewrite the texts of these columns, in both rows; the first time alone."""
        if self._converted:
            return
        self._converted = True
        for place, name in enumerate(self.table.columns):
            if name in by_column:
                self._op.new = _rewritten(self._op.new, place, by_column[name])
                self._op.old = _rewritten(self._op.old, place, by_column[name])
        self._new = self._old = None

    @property
    def key_names(self) -> frozenset[str]:
        """Name the row's columns that the record's key has."""
        table = self.table
        return frozenset(table.columns[index] for index in table.key)


def _rewritten(row: Row | None, place: int, by: Callable[[str], Value]) -> Row | None:
    if row is None or not isinstance(value := row[place], str):
        return row
    return [*row[:place], by(value), *row[place + 1 :]]


FIRST_LAYOUT: Final = 1
_LAYOUT_HEADER: Final = "walstream-layout"


def layout_of(op: Op) -> int:
    """Return the number of the layout that an op's record was sent by.

    Keys of a later one are in other partitions than those of an earlier one.
    """
    for name, text in op.record.headers:
        if name == _LAYOUT_HEADER and text is not None and text.isdigit():
            return int(text)
    return FIRST_LAYOUT
