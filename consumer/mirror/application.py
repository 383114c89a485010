"""A ready-made application: tables of the same shape in another database follow.

Each op is applied in the consumer's transaction. What it does to a row is decided by
the op alone, so that a table backfilled again converges:

- Insert: by ON CONFLICT on the target's primary key an UPDATE where the row is there.
- Update: of the old key's row; an Insert where there is none and the op is whole. One
  that is not is left to the backfill, which is on its way.
- Delete: of the old row's key; no row there is no error.
- Truncate: of this table alone.
"""

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakSet

import psycopg
from psycopg import IsolationLevel
from psycopg.rows import tuple_row

from consumer.handler import Fatal, Transaction
from consumer.mirror.envelope import take_in, truncates
from consumer.mirror.errors import MirrorError, RetryPatience, stop, translate
from consumer.mirror.row_filler import RowFiller
from consumer.mirror.shape_cache import ShapeCache
from consumer.mirror.table_choice import matcher, servers_own
from consumer.mirror.table_shape import TargetTable
from consumer.mirror.table_writer import Row, Rows
from consumer.mirror.target_check import SETTINGS, refuse_cascades, warn
from consumer.mirror.write_batch import Later
from consumer.mirror.write_order import WriteOrder
from consumer.op import EnvelopeOp, Op, RegisteredOp
from consumer.state.connection import connect
from walstream.op import Kind

_log: Final = logging.getLogger("consumer.mirror")

_SAME: Final = """
SELECT pg_catalog.current_database(), system_identifier,
       pg_catalog.current_setting('session_replication_role')
  FROM pg_catalog.pg_control_system()
"""
_NOW: Final = "SET CONSTRAINTS ALL IMMEDIATE"  # until the transaction ends


class PostgresMirror(RowFiller):
    """Applies ops to the tables of the same name in another database.

    `tables` are patterns (`*` and `?`) of `schema.table`; ops of others are passed
    over. `patience_s` is how long an op is tried again that the target's constraints
    refuse. `row_positions` keeps each row's position in the target, so that no older
    op overwrites a newer one although they come in different partitions; by default
    only for tables whose records have another key than the row's. `skip_truncates`
    passes over each TRUNCATE that comes in an envelope of Debezium.

    Give the consumer the same DSN: what the mirror writes and how far it is commit
    together.
    """

    # a snapshot of the transaction would hide that a table was altered in it
    isolation_level: Final = IsolationLevel.READ_COMMITTED
    # else a constraint refuses where nobody can tell which op it was
    _checks_each = True

    def __init__(
        self,
        target_dsn: str,
        tables: Iterable[str] = ("*",),
        *,
        patience_s: float = 60,
        row_positions: bool | None = None,
        skip_truncates: bool = False,
    ) -> None:
        self._dsn = target_dsn
        super().__init__(matcher(tables))
        self._patience = RetryPatience(patience_s)
        self._order = WriteOrder(wanted=row_positions)
        self._shapes = ShapeCache(self._order.look, self._write_now)
        self._skip_truncates = skip_truncates
        self._told: set[str] = set()  # tables
        self._starting = threading.Lock()
        self._started: tuple[Any, ...] | None = None
        self._checked = False
        self._later: WeakKeyDictionary[Transaction, Later] = WeakKeyDictionary()
        self._begun: WeakSet[Transaction] = WeakSet()  # batches that see every row

    def start(self) -> None:
        """Look at the target, and name what of it may refuse or double changes.

        A consumer does it when it runs, and the first op.
        """
        with self._starting:
            if self._started is not None:
                return
            with connect(self._dsn, "mirror") as connection:
                self._order.prepare(connection)
                self._look_at(connection)
                self._started = connection.execute(_SAME).fetchone()

    def _look_at(self, connection: psycopg.Connection[Any]) -> None:
        refuse_cascades(connection, self._wanted)
        warn(connection, self._wanted)

    def begin_consuming(self) -> None:
        """Be started by a consumer, which waits while the target is away."""
        self.start()

    def handle_message(self, tx: Transaction, op: Op, /) -> None:
        """Apply one op."""
        is_alone = tx not in self._begun
        try:
            if is_alone:
                tx.execute(SETTINGS)
            if not self._checked:
                self._check(tx)
            self._order.see_source(tx, op)
            if self._wanted(op.table.schema, op.table.name):
                _APPLY[op.kind](self, self._rows(tx, op), op)
            if is_alone:
                self._shapes.prove(tx)
        except psycopg.Error as error:
            self._shapes.clear()  # what they know may be rolled back with it
            self._begun.discard(tx)
            raised = translate(error, self._patience, op)
            if raised is error:
                raise
            raise raised from None

    def begin_batch(self, tx: Transaction, ops: Sequence[Op]) -> None:
        """Lock the positions of the rows that these ops write, all in one order.

        Without it each op locks its own, and two batches may wait for each other.
        """
        if tx in self._begun:
            self._shapes.clear()  # rolled back, in a pipeline by what no op was told
        self._order.begin(tx)
        self._shapes.begin(tx)
        self._later.pop(tx, None)
        tx.execute(SETTINGS)
        self._begun.add(tx)
        if len(ops) <= 1:
            return
        self._later[tx] = self._collector()
        if self._order.off:
            return
        if not self._checked:
            self._check(tx)
        try:
            self._order.take(tx, self._with_shapes(tx, ops))
        except psycopg.Error:
            self._shapes.clear()  # what they know may be rolled back with it
            raise

    def _collector(self) -> Later:
        return Later(self._insert_missing)

    def end_batch(self, tx: Transaction) -> None:
        """Write what waits, and positions that moved; the transaction is to commit.

        Raises SerializationFailure where a table was altered meanwhile: nothing of the
        batch may stay, and all of it is to come again.
        """
        self._begun.discard(tx)
        if (later := self._later.pop(tx, None)) is not None:
            try:
                later.write_all(tx)
            except psycopg.Error:
                self._shapes.clear()  # what they know may have changed
                raise
        self._order.end(tx)
        self._shapes.prove(tx)

    def _with_shapes(
        self, tx: Transaction, ops: Sequence[Op]
    ) -> Iterator[tuple[Op, TargetTable]]:
        """Yield the ops of tables that can be mirrored; others stop on their own."""
        for op in ops:
            if self._wanted(op.table.schema, op.table.name) and not servers_own(op):
                try:
                    yield op, self._shape(tx, op)
                except Fatal:
                    continue

    def _check(self, tx: Transaction) -> None:
        self.start()
        with tx.cursor(row_factory=tuple_row) as cursor:
            if cursor.execute(_SAME).fetchone() != self._started:
                raise MirrorError(
                    "the consumer writes to another database than target_dsn,"
                    " or with another session_replication_role",
                    hint="pass the mirror's dsn to IdempotentConsumer",
                )
        self._checked = True

    def _rows(self, tx: Transaction, op: Op) -> Rows:
        if servers_own(op):
            raise stop(op, "the server's own tables are not mirrored")
        shape = self._shape(tx, op)
        if shape.deferred and self._checks_each:
            tx.execute(_NOW)
        if not shape.key:
            self._order.see_keyless(shape, op)
        return Rows(tx, shape)

    def _shape(self, tx: Transaction, op: Op) -> TargetTable:
        shape = self._shapes.find(tx, op)
        if isinstance(op, EnvelopeOp | RegisteredOp):
            take_in(tx, shape, op)
        return shape

    # --- one kind of op each

    def _insert(self, rows: Rows, op: Op) -> None:
        if op.new.absent:
            table = op.table.full_name
            raise stop(
                op,
                f"an Insert without a value of {', '.join(sorted(op.new.absent))}:"
                " an UPDATE without them became one, by a row filter or a new key",
                f"on the source, ALTER TABLE {table} REPLICA IDENTITY FULL"
                f" or drop the row filter; then walstream backfill {table}",
            )
        row = dict(op.new.items())
        key = rows.shape.key_of(row)
        if self._order.newest(rows, op, key):
            later = self._later_of(rows)
            if later is not None and key is not None:
                later.upsert(rows, key, row)
            else:
                rows.upsert(row)

    def _update(self, rows: Rows, op: Op) -> None:
        if not rows.shape.key:
            self._update_alike(rows, op)
            return
        row = dict(op.new.items())
        old = self._old_key(rows, op)
        new = rows.shape.key_of({**(old or {}), **row})
        if new is None:
            raise stop(op, *_KEYLESS)
        if old is None or self._order.same(rows, old, new):
            if self._order.newest(rows, op, new):
                self._update_same(rows, op, new, row)
        else:
            self._move(rows, op, old, new)

    def _update_same(self, rows: Rows, op: Op, key: Row, row: Row) -> None:
        later = self._later_of(rows)
        if later is not None and later.update(rows, key, row, op):
            return
        self._write_now(rows)
        if not rows.update(key, row):
            self._insert_missing(rows, op)

    def _update_alike(self, rows: Rows, op: Op) -> None:
        if not op.old:
            raise stop(op, *_KEYLESS)
        old, row = dict(op.old.items()), dict(op.new.items())
        if not rows.update_alike(old, row):
            self._insert_missing(rows, op)

    def _move(self, rows: Rows, op: Op, old: Row, new: Row) -> None:
        """Apply an Update that changed its key: a Delete and an Insert, at once."""
        self._write_now(rows)
        self._order.key_moves(rows, op)
        was_newest = self._order.newest(rows, op, old)
        is_newest = self._order.newest(rows, op, new)
        if is_newest and was_newest and op.new.absent:
            if not rows.update(old, dict(op.new.items())):
                self._insert_missing(rows, op)
            return
        if was_newest:
            rows.delete(old)
        if is_newest:
            self._insert_missing(rows, op)

    def _insert_missing(self, rows: Rows, op: Op) -> None:
        if not op.new.absent:
            rows.upsert(dict(op.new.items()))
            return
        # its table is being backfilled beside the stream: the row comes behind this op
        # in the same partition, and brings what this one does not
        table = op.table.full_name
        if table not in self._told:
            self._told.add(table)
            _log.warning(
                "updates of %r lack values of rows that the target does not have: the"
                " table's backfill sends them; if none runs: walstream backfill %s",
                table,
                table,
            )

    def _delete(self, rows: Rows, op: Op) -> None:
        if not rows.shape.key:
            rows.delete_alike(dict(op.old.items()))
            return
        key = self._old_key(rows, op)
        if key is not None and self._order.newest(rows, op, key):
            later = self._later_of(rows)
            if later is not None:
                later.delete(rows, key)
            else:
                rows.delete(key)

    def _truncate(self, rows: Rows, op: Op) -> None:
        if isinstance(op, EnvelopeOp) and not truncates(op, skip=self._skip_truncates):
            return
        self._write_now(rows)
        rows.empty()
        self._order.forget(rows)

    def _old_key(self, rows: Rows, op: Op) -> Row | None:
        """Find which row it was: another index than the target's key may tell.

        An Update that came in an envelope has the key that it had.
        """
        if not op.old or (isinstance(op, EnvelopeOp) and op.kind is Kind.UPDATE):
            return None
        old = dict(op.old.items())
        if (key := rows.shape.key_of(old)) is not None:
            return key
        self._write_now(rows)
        return rows.key_alike(old)

    def _later_of(self, rows: Rows) -> Later | None:
        """Return what collects a table's writes; None: they are not to wait."""
        return self._later.get(rows.tx) if rows.shape.plain else None

    def _write_now(self, rows: Rows) -> None:
        """Write what waits of a table, since what comes next looks at its rows."""
        if (later := self._later_of(rows)) is not None:
            later.write(rows)


_KEYLESS: Final = (
    "no key identifies the row: the target has none, or the op has no value of it",
    "create the source's primary key in the target, or use REPLICA IDENTITY FULL",
)
_APPLY: Final[dict[Kind, Callable[[PostgresMirror, Rows, Op], None]]] = {
    Kind.INSERT: PostgresMirror._insert,  # noqa: SLF001 - its own dispatch
    Kind.UPDATE: PostgresMirror._update,  # noqa: SLF001
    Kind.DELETE: PostgresMirror._delete,  # noqa: SLF001
    Kind.TRUNCATE: PostgresMirror._truncate,  # noqa: SLF001
}
