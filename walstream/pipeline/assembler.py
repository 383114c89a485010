"""Message stream -> ops: relation cache, transaction bounds, numbering. Sans-IO.

Column names and types come from the Relation messages of this connection alone. seq_id
counts what the slot sends, before anything is filtered, dropped or routed; an update
that moves its key takes two numbers.
"""

from typing import Final

from walstream.errors import HistoryError, WalstreamError
from walstream.lsn import Lsn, show
from walstream.op import Kind, ReplicationOp, Table
from walstream.pipeline.column_history import NO_FACTS, FactHistory
from walstream.pipeline.old_row import unidentified
from walstream.pipeline.pgoutput.messages import (
    Begin,
    Delete,
    Insert,
    Relation,
    Truncate,
    Type,
    Update,
)
from walstream.pipeline.relation_cache import Relations, RelationShape
from walstream.pipeline.root_key import Place
from walstream.pipeline.row_key import KeyHistory
from walstream.row import OMITTED, UNCHANGED, Row, Value, any_absent
from walstream.telemetry.meter import TableMeter, TableMeters

_INSERT: Final = Kind.INSERT  # an enum's members are slow to look up
_UPDATE: Final = Kind.UPDATE
_DELETE: Final = Kind.DELETE


class Assembler:
    """Turns one connection's messages, in order, into ops."""

    def __init__(self, resume: Lsn) -> None:
        self._resume = resume
        self._relations = Relations()
        self._shapes = self._relations.shapes  # looked at for each row
        self._lsn: Lsn = 0
        self._xid = 0
        self._commit_time = 0
        self._seq_id = 0
        self.meter = TableMeter("")  # of the last row's table

    def measure(self, meters: TableMeters) -> None:
        """Set the counters of each table; call it before the first message."""
        self._relations.meters = meters

    @property
    def count(self) -> int:
        """Count of seq_ids that the transaction has taken so far."""
        return self._seq_id

    @property
    def place(self) -> Place:
        """Place in the stream: no op from there on was returned yet."""
        return self._lsn, self._seq_id

    def begin(self, begin: Begin) -> None:
        """Open a transaction; raise if it is below the requested position."""
        if begin.final_lsn < self._resume:
            raise WalstreamError(
                f"the server sent a transaction of {show(begin.final_lsn)}, below "
                f"{show(self._resume)}, where the stream had to begin",
                hint="nothing was confirmed; report this with the server's version",
            )
        self._lsn = begin.final_lsn
        self._xid = begin.xid
        self._commit_time = begin.commit_time
        self._seq_id = 0
        self._relations.reach(begin.final_lsn)

    def name_type(self, message: Type) -> None:
        """Store the name of a type, which arrives before the relation that needs it."""
        self._relations.name_type(message)

    def describe(
        self,
        relation: Relation,
        history: KeyHistory,
        facts: FactHistory = NO_FACTS,
    ) -> Table:
        """Store a Relation message, with the keys and facts in force for its table."""
        return self._relations.describe(relation, history, self.place, facts)

    def relation(self, op: ReplicationOp) -> Relation:
        """Return the description under which an op of this connection was read."""
        return self._shapes[op.table.oid].relation

    def learn(self, op: ReplicationOp, facts: FactHistory) -> None:
        """Let an op, and those behind it, have the facts in force there."""
        op.table = self._relations.learn(op.table.oid, facts, (op.lsn, op.seq_id))

    def row(self, message: Insert | Update | Delete, row_lsn: Lsn) -> ReplicationOp:
        """Return the op of a row message."""
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
        """Return one op for each table of a Truncate, in the message's order."""
        self._relations.let_go()
        return [
            self._op(Kind.TRUNCATE, self._shape(oid), row_lsn)
            for oid in message.relation_oids
        ]

    def _op(self, kind: Kind, shape: RelationShape, row_lsn: Lsn) -> ReplicationOp:
        op = ReplicationOp(kind, shape.table, self._lsn, self._take_numbers(shape, 1))
        op.row_lsn = row_lsn
        op.xid = self._xid
        op.commit_time = self._commit_time
        return op

    def _shape(self, oid: int) -> RelationShape:
        try:
            return self._shapes[oid]
        except KeyError:
            return self._relations.missing(oid, self.place)

    @staticmethod
    def _checked(row: list[Value], shape: RelationShape) -> list[Value]:
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
                before = old[index]
                if type(before) is not str:
                    self._check_key(shape, index, before, "update", message.old_whole)
                after = new[index]
                if after is not UNCHANGED and before != after:
                    moved = True
        elif shape.blind:
            raise self._unidentified(shape, "update")
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
        if absent or not message.old_whole:  # else its nulls are some
            for index in shape.split:
                value = old[index]
                if type(value) is not str:
                    self._check_key(shape, index, value, "delete", message.old_whole)
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

    def _check_key(
        self,
        shape: RelationShape,
        index: int,
        value: Value,
        what: str,
        whole: bool,  # noqa: FBT001 - positions are faster
    ) -> None:
        """Raise if an old row lacks a column that decides a key.

        A null is one in a whole row alone: what a replica identity is made of is NOT
        NULL. A stand-in is a text, though of another type.
        """
        if isinstance(value, str):
            return
        if value is not None or not (whole and shape.whole):
            raise self._unidentified(shape, what, index)

    def _unidentified(
        self, shape: RelationShape, what: str, index: int | None = None
    ) -> HistoryError:
        column = None if index is None else shape.table.columns[index]
        op = f"({show(self._lsn)}, {self._seq_id})"
        return unidentified(f"{what} at {op}", shape.relation, shape.blind, column)

    def _take_numbers(self, shape: RelationShape, count: int) -> int:
        """Return the first of `count` new seq_ids of the transaction."""
        first = self._seq_id
        self._seq_id = first + count
        self.meter = meter = shape.meter
        meter.ops += count
        return first

    def _old_row(
        self, old: list[Value], shape: RelationShape, *, whole: bool
    ) -> tuple[list[Value], bool]:
        """Return the old row with omitted values marked: pgoutput sends NULL.

        Also return whether it has such a column.
        """
        self._checked(old, shape)
        if whole and shape.whole:
            return old, False
        if whole:
            row: list[Value] = [OMITTED if value is None else value for value in old]
            return row, any_absent(row)
        if shape.fuller:
            # of a leaf under FULL, marked as its root's key: what it carries is true
            row = [OMITTED if value is None else value for value in old]
        else:
            row = list(shape.omitted)
        # the key, not what the message marks: a root's may be another one by now
        for index in shape.table.key:
            row[index] = old[index]
        if shape.fuller:
            return row, any_absent(row)
        return row, len(shape.table.key) < len(row)


def _wrong_width(row: Row, shape: RelationShape) -> WalstreamError:
    return WalstreamError(
        f"a row of {shape.table.full_name!r} has {len(row)} values for"
        f" {len(shape.table.columns)} columns",
        hint="nothing was confirmed; report this with the server's version",
    )


def _fill(new: list[Value], old: Row) -> None:
    """Return the row with unchanged TOAST values filled in from the old row."""
    for index, value in enumerate(new):
        if value is UNCHANGED and old[index] is not OMITTED:
            new[index] = old[index]


def outside(what: str) -> WalstreamError:
    """Return the error of what came outside of a transaction."""
    return WalstreamError(
        f"{what} came outside of a transaction",
        hint="nothing was confirmed; report this with the server's version",
    )
