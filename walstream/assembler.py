"""Message stream -> ops: relation cache, transaction bounds, numbering. Sans-IO.

Column names and types come from the Relation messages of this connection alone. seq_id
counts what the slot sends, before anything is filtered, dropped or routed; an update
that moves its key takes two numbers.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from walstream.column_type import written_as
from walstream.errors import WalstreamError
from walstream.keys import KeyHistory
from walstream.lsn import Lsn, show
from walstream.meter import TableMeter, TableMeters
from walstream.op import Kind, ReplicationOp, Table
from walstream.pgoutput.messages import (
    Begin,
    Delete,
    Insert,
    Relation,
    Truncate,
    Type,
    Update,
)
from walstream.row import OMITTED, UNCHANGED, Row, Value, any_absent

_INSERT: Final = Kind.INSERT  # an enum's members are slow to look up
_UPDATE: Final = Kind.UPDATE
_DELETE: Final = Kind.DELETE


@dataclass(slots=True, init=False)
class _Shape:
    """A relation as this connection described it, under one set of keys."""

    relation: Relation
    history: KeyHistory
    old_rows_whole: bool  # may a null in an old row marked 'O' be believed?
    table: Table
    split: tuple[int, ...]  # columns whose change splits an update
    identity: tuple[int, ...]  # columns that an old row marked 'K' carries
    omitted: list[Value]  # such a row, without them
    meter: TableMeter
    width: int  # how many columns a row has

    def __init__(
        self,
        relation: Relation,
        keys: tuple[KeyHistory, bool],
        table: Table,
        split: tuple[int, ...],
        meter: TableMeter,
    ) -> None:
        self.relation = relation
        self.history, self.old_rows_whole = keys
        self.table = table
        self.split = split
        self.identity = tuple(
            index for index, column in enumerate(relation.columns) if column.is_key
        )
        self.omitted = [OMITTED] * len(relation.columns)
        self.meter = meter
        self.width = len(table.columns)


class Assembler:
    """One connection's stream of messages, in order, to ops."""

    def __init__(self, resume: Lsn) -> None:
        self._resume = resume
        self._shapes: dict[int, _Shape] = {}
        self._types: dict[int, Type] = {}  # those that are not built in
        self._boundary: Lsn | None = None  # the next LSN at which some keys change
        self._lsn: Lsn = 0
        self._xid = 0
        self._commit_time = 0
        self._seq_id = 0
        self._meters = TableMeters()
        self.meter = TableMeter("")  # of the last row's table

    def measure(self, meters: TableMeters) -> None:
        """Count the numbers of each table there; before the first message."""
        self._meters = meters

    @property
    def count(self) -> int:
        """How many numbers the transaction has taken so far."""
        return self._seq_id

    def begin(self, begin: Begin) -> None:
        """Open a transaction. One below the position asked for is an error."""
        if begin.final_lsn < self._resume:
            raise WalstreamError(
                f"the server sent a transaction of {show(begin.final_lsn)}, below"
                f" {show(self._resume)} from where the stream was asked for",
                hint="nothing was confirmed; report this with the server's version",
            )
        self._lsn = begin.final_lsn
        self._xid = begin.xid
        self._commit_time = begin.commit_time
        self._seq_id = 0
        if self._boundary is not None and self._lsn >= self._boundary:
            self._boundary = None
            for shape in list(self._shapes.values()):
                self.describe(
                    shape.relation,
                    shape.history,
                    old_rows_whole=shape.old_rows_whole,
                )

    def name_type(self, message: Type) -> None:
        """Take the name of a type, which comes before the relation that needs it."""
        self._types[message.oid] = message

    def _written_as(self, oid: int) -> int:
        named = self._types.get(oid)
        return written_as(oid, named.namespace, named.name) if named else oid

    def describe(
        self, relation: Relation, history: KeyHistory, *, old_rows_whole: bool = True
    ) -> Table:
        """Take a Relation message, with the keys that count for its table.

        `old_rows_whole` is False for a partition root under FULL when some leaf is not:
        then an old row carries nulls that are none.
        """
        keys = history.at(self._lsn)
        names = tuple(column.name for column in relation.columns)
        full = relation.replica_identity == "f"
        key_names = set(keys.primary_key)
        row_key = tuple(
            index
            for index, column in enumerate(relation.columns)
            if (column.name in key_names if full else column.is_key)
        )
        partition_key = {
            names.index(name) for name in keys.partition_key if name in names
        }
        table = Table(
            schema=relation.namespace,
            name=relation.name,
            columns=names,
            key=row_key,
            type_oids=tuple(
                self._written_as(column.type_oid) for column in relation.columns
            ),
        )
        self._shapes[relation.oid] = _Shape(
            relation,
            (history, old_rows_whole),
            table,
            tuple(sorted(partition_key.union(row_key))),
            self._meters.of(table.full_name),
        )
        self._expect(history.boundaries())
        return table

    def _expect(self, boundaries: Iterable[Lsn]) -> None:
        for boundary in boundaries:
            if boundary > self._lsn and (
                self._boundary is None or boundary < self._boundary
            ):
                self._boundary = boundary

    def row(self, message: Insert | Update | Delete, row_lsn: Lsn) -> ReplicationOp:
        """Turn a row message into its op."""
        if type(message) is Insert:
            shape = self._shape(message.relation_oid)
            sequence = self._seq_id
            self._seq_id = sequence + 1
            new = message.new
            if len(new) != shape.width:
                raise _wrong_width(new, shape)
            self.meter = meter = shape.meter
            meter.ops += 1
            return ReplicationOp(
                _INSERT,
                shape.table,
                self._lsn,
                sequence,
                None,
                new,
                message.toasted,
                False,  # noqa: FBT003 - positions are faster, and inserts are many
                row_lsn,
                self._xid,
                self._commit_time,
            )
        if type(message) is Update:
            return self._update(message, row_lsn)
        if type(message) is Delete:
            return self._delete(message, row_lsn)
        raise WalstreamError(f"no row message: {type(message).__name__}")

    def truncate(self, message: Truncate, row_lsn: Lsn) -> list[ReplicationOp]:
        """Turn a Truncate into one op a table, in the message's order."""
        return [
            self._op(Kind.TRUNCATE, self._shape(oid), row_lsn)
            for oid in message.relation_oids
        ]

    def _op(self, kind: Kind, shape: _Shape, row_lsn: Lsn) -> ReplicationOp:
        op = ReplicationOp(kind, shape.table, self._lsn, self._take_numbers(shape, 1))
        op.row_lsn = row_lsn
        op.xid = self._xid
        op.commit_time = self._commit_time
        return op

    def _shape(self, oid: int) -> _Shape:
        try:
            return self._shapes[oid]
        except KeyError:
            raise WalstreamError(
                f"a row of relation {oid} came before its Relation message",
                hint="nothing was confirmed; report this with the server's version",
            ) from None

    @staticmethod
    def _checked(row: list[Value], shape: _Shape) -> list[Value]:
        if len(row) != shape.width:
            raise _wrong_width(row, shape)
        return row

    def _update(self, message: Update, row_lsn: Lsn) -> ReplicationOp:
        shape = self._shape(message.relation_oid)
        new = self._checked(message.new, shape)
        old: Row | None = None
        absent = moved = False
        if message.old is not None:
            old, absent = self._old_row(message.old, shape, whole=message.old_whole)
            if message.toasted:
                _fill(new, old)
            for index in shape.split:
                if _differs(old[index], new[index]):
                    moved = True
        numbers = 2 if moved else 1
        return ReplicationOp(
            _UPDATE,
            shape.table,
            self._lsn,
            self._take_numbers(shape, numbers),
            old,
            new,
            absent or (message.toasted and any_absent(new)),
            moved,
            row_lsn,
            self._xid,
            self._commit_time,
        )

    def _delete(self, message: Delete, row_lsn: Lsn) -> ReplicationOp:
        shape = self._shape(message.relation_oid)
        old, absent = self._old_row(message.old, shape, whole=message.old_whole)
        return ReplicationOp(
            _DELETE,
            shape.table,
            self._lsn,
            self._take_numbers(shape, 1),
            old,
            None,
            absent,
            False,  # noqa: FBT003 - positions are faster
            row_lsn,
            self._xid,
            self._commit_time,
        )

    def _take_numbers(self, shape: _Shape, count: int) -> int:
        """Give the first of so many numbers of the transaction, and count them."""
        first = self._seq_id
        self._seq_id = first + count
        self.meter = meter = shape.meter
        meter.ops += count
        return first

    def _old_row(
        self, old: list[Value], shape: _Shape, *, whole: bool
    ) -> tuple[list[Value], bool]:
        """Mark what an old row does not carry: there, pgoutput sends a false NULL.

        Also tells whether there is such a column.
        """
        self._checked(old, shape)
        if whole and shape.old_rows_whole:
            return old, False
        if whole:
            row: list[Value] = [OMITTED if value is None else value for value in old]
            return row, any_absent(row)
        row = list(shape.omitted)
        for index in shape.identity:
            row[index] = old[index]
        return row, len(shape.identity) < len(row)


def _wrong_width(row: Row, shape: _Shape) -> WalstreamError:
    return WalstreamError(
        f"a row of {shape.table.full_name!r} has {len(row)} values for"
        f" {len(shape.table.columns)} columns",
        hint="nothing was confirmed; report this with the server's version",
    )


def _fill(new: list[Value], old: Row) -> None:
    """Take unchanged toasted values from the old row, as far as it has them."""
    for index, value in enumerate(new):
        if value is UNCHANGED and old[index] is not OMITTED:
            new[index] = old[index]


def _differs(old: Value, new: Value) -> bool:
    return old is not OMITTED and new is not UNCHANGED and old != new
