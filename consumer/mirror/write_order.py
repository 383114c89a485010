"""Never older over newer: which ops a mirror compares with their rows' positions."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from weakref import WeakKeyDictionary

import psycopg

from consumer.handler import Transaction
from consumer.mirror import position_store, row_position
from consumer.mirror.errors import stop
from consumer.mirror.position_batch import Held, Texts
from consumer.mirror.position_store import Store
from consumer.mirror.row_position import Decides
from consumer.mirror.source_generation import note_source
from consumer.mirror.table_identity import note_table, see_table
from consumer.mirror.table_shape import TargetTable
from consumer.mirror.table_writer import Row, Rows
from consumer.op import Op

_log: Final = logging.getLogger("consumer.mirror")


class _Batch:
    """The tables and positions of one transaction, until it ends."""

    def __init__(self) -> None:
        self.held: Held | None = None
        self.unmarked: set[str] = set()  # tables, locked as such
        self.marked: set[str] = set()  # by this very transaction


class WriteOrder:
    """Keeps rows' positions: of all tables, of none, or (None) where it is needed."""

    def __init__(self, *, wanted: bool | None) -> None:
        self._wanted = wanted
        self._batches: WeakKeyDictionary[Transaction, _Batch] = WeakKeyDictionary()
        self._keyless: set[str] = set()  # tables, told as such

    @property
    def off(self) -> bool:
        return self._wanted is False

    def prepare(self, connection: Transaction) -> None:
        if not self.off:
            row_position.prepare(connection)

    def look(self, tx: Transaction, shape: TargetTable, op: Op) -> None:
        """Learn of a table how its rows' positions are kept."""
        if self.off:
            return
        if shape.respelt:
            shape.store = _own_store(tx, shape, op)
        see_table(tx, shape, keeps=bool(self._wanted or shape.respelt))

    def see_source(self, tx: Transaction, op: Op) -> None:
        """Keep the source that a record names."""
        if self.off or not (op.record.headers or op.partitions):
            return
        batch = self._batches.get(tx)
        if note_source(tx, op) and batch is not None and batch.held is not None:
            batch.held.source_changed()

    def see_keyless(self, shape: TargetTable, op: Op) -> None:
        """Log once of a table without a key that its ops may come out of order.

        Nothing here can be compared. What cures it comes in the same partition: it
        goes on, so that it gets there.
        """
        name = shape.full_name
        if name in self._keyless or not row_position.keys_moved(op):
            return
        self._keyless.add(name)
        _log.warning(
            "%s has no key, and keys of %s moved to other partitions: rows that changed"
            " around that time may be duplicated or missing. If it was not backfilled"
            " since then, run on the source: walstream backfill %s --replace",
            name,
            op.record.topic,
            name,
        )

    def begin(self, tx: Transaction) -> None:
        """Begin a transaction: nothing of a former one counts, rolled back or not."""
        self._batches[tx] = _Batch()

    def take(self, tx: Transaction, ops: Iterable[tuple[Op, TargetTable]]) -> None:
        """Lock the positions of the rows that these ops write."""
        if self.off:
            return
        written = list(ops)
        if self._wanted is None:
            self._look_at_marks(tx, written)
        wanted: dict[Store, list[Texts]] = {}
        for op, shape in written:
            if self._settled(shape, op):
                continue
            for key in _keys(shape, op):
                if self._keeps(tx, shape, op, key):
                    texts = row_position.key_texts(shape.store, shape.full_name, key)
                    wanted.setdefault(shape.store, []).append(texts)
        if wanted:
            held = self._batches.setdefault(tx, _Batch()).held = Held()
            held.take(tx, wanted)

    def end(self, tx: Transaction) -> None:
        """Write the positions that moved; the transaction is to commit."""
        batch = self._batches.pop(tx, None)
        if batch is not None and batch.held is not None:
            batch.held.write(tx)

    def same(self, rows: Rows, old: Row, new: Row) -> bool:
        """Return whether an Update left the key as it was, or spelt it differently."""
        if old == new or not rows.shape.respelt:
            return old == new
        shape, held = rows.shape, self._held(rows.tx)
        known = None
        if held is not None:
            known = held.same(shape.store, shape.full_name, old, new)
        return rows.same_key(old, new) if known is None else known

    def newest(self, rows: Rows, op: Op, key: Row | None) -> bool:
        """Return whether no newer op wrote the row; keep this one's position."""
        tx, shape = rows.tx, rows.shape
        if not (op.lsn or op.exact):
            return True  # Debezium read it beside its stream, and names no place
        if key is None or not self._keeps(tx, shape, op, key):
            return True
        held = self._held(tx)
        newest = None if held is None else held.note(tx, shape.store, op, key)
        return row_position.note(tx, shape.store, op, key) if newest is None else newest

    def key_moves(self, rows: Rows, op: Op) -> None:
        """Keep positions of the whole table from now on, in other instances too."""
        if self._wanted is None and not rows.shape.respelt:
            self._mark(rows.tx, rows.shape, op)

    def forget(self, rows: Rows) -> None:
        if not self.off:
            row_position.forget(rows.tx, rows.shape.store, rows.shape.full_name)

    def _held(self, tx: Transaction) -> Held | None:
        batch = self._batches.get(tx)
        return None if batch is None else batch.held

    def _settled(self, shape: TargetTable, op: Op) -> bool:
        """Return whether nothing of this op is to be looked at beforehand.

        Where its record's key is another all the same, it is met when it is applied.
        """
        return not self._wanted and _asks(shape) and op.record.topic in shape.proved

    def _look_at_marks(
        self, tx: Transaction, written: Sequence[tuple[Op, TargetTable]]
    ) -> None:
        """Find out for all tables at once, and mark those that are to be."""
        shapes = {one.full_name: one for _, one in written if _asks(one)}
        if not shapes:
            return
        unknown = dict.fromkeys(shapes, False)
        marking: dict[str, Op] = {}
        for op, shape in written:
            if shape.full_name in unknown and not self._settled(shape, op):
                found = (row_position.decides(op, key) for key in _keys(shape, op))
                if Decides.NO in found:
                    marking.setdefault(shape.full_name, op)
        marked = row_position.marks(tx, unknown | dict.fromkeys(marking, True))
        for name in unknown:
            if name in marked:
                shapes[name].keyed_otherwise = True
            elif name not in marking:
                self._batches.setdefault(tx, _Batch()).unmarked.add(name)
            else:
                self._mark(tx, shapes[name], marking[name])

    def _keeps(self, tx: Transaction, shape: TargetTable, op: Op, key: Row) -> bool:
        """Return whether ops of this row may lie in several partitions.

        Each op tells by itself. One that says so tells it of all ops of its table, also
        those that other instances read: older ones of the row look like before.
        """
        if self._wanted is not None:
            return self._wanted
        if not _asks(shape) or self._is_marked(tx, shape):
            return True
        proved = op.record.topic in shape.proved
        decides = row_position.decides(op, key, ask=not proved)
        if decides is Decides.YES:
            shape.proved.add(op.record.topic)
        elif decides is Decides.NO:
            self._mark(tx, shape, op)
        return decides is not Decides.YES

    def _is_marked(self, tx: Transaction, shape: TargetTable) -> bool:
        batch, name = self._batches.get(tx), shape.full_name
        if batch is not None and name in batch.unmarked:
            return False
        if batch is not None and name in batch.marked:
            return True
        if row_position.marks(tx, {name: False}):
            # without a batch the mark may be this very transaction's
            shape.keyed_otherwise = batch is not None
            return True
        if batch is not None:
            batch.unmarked.add(name)
        return False

    def _mark(self, tx: Transaction, shape: TargetTable, op: Op) -> None:
        """Publish it when this transaction is committed, and act on it till then."""
        name, batch = shape.full_name, self._batches.get(tx)
        if shape.keyed_otherwise or (batch is not None and name in batch.marked):
            return
        if row_position.mark(tx, name):
            note_table(tx, shape)
            _tell(op, changed=op.record.topic in shape.proved)
        if batch is not None:
            batch.unmarked.discard(name)
            batch.marked.add(name)


def _tell(op: Op, *, changed: bool) -> None:
    """Note that ops of a row may lie in several partitions; log it once."""
    moved = row_position.keys_moved(op)
    _log.log(
        logging.WARNING if moved or changed else logging.INFO,
        "%s: positions of its rows are stored from now on: %s",
        op.table.full_name,
        f"keys of {op.record.topic} moved to other partitions"
        if moved
        else "the keys of its records are not those of its rows",
    )


def _asks(shape: TargetTable) -> bool:
    """Return whether it is not yet known that a table's rows have positions."""
    return not (shape.keyed_otherwise or shape.respelt)


def _keys(shape: TargetTable, op: Op) -> Iterator[Row]:
    """Name the rows that an op may write, as far as it tells."""
    new, old = dict(op.new.items()), dict(op.old.items())
    for row in (old, {**old, **new} if new else {}):
        if row and (key := shape.key_of(row)) is not None:
            yield key


def _own_store(tx: Transaction, shape: TargetTable, op: Op) -> Store:
    try:
        with tx.transaction():
            return position_store.own(tx, shape.full_name, shape.key_types)
    except psycopg.errors.InsufficientPrivilege:
        made = position_store.ddl(shape.full_name, shape.key_types)
        raise stop(
            op,
            "equal keys may be written differently, so the positions of its rows need"
            " a separate table, which the role may not create",
            "GRANT CREATE ON SCHEMA … to the dsn's role, or create it and grant SELECT,"
            f" INSERT, UPDATE, DELETE: {made}",
        ) from None
