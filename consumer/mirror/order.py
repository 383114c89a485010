"""Never older over newer: which ops a mirror compares with their rows' positions."""

from collections.abc import Iterable, Iterator
from weakref import WeakKeyDictionary

import psycopg

from consumer.handler import Transaction
from consumer.mirror import position, store
from consumer.mirror.held import Held, Texts
from consumer.mirror.position import Decides
from consumer.mirror.rows import Row, Rows
from consumer.mirror.shape import Shape
from consumer.mirror.store import Store
from consumer.mirror.trouble import stop
from consumer.op import Op


class Order:
    """Keeps rows' positions: of all tables, of none, or (None) where it is needed."""

    def __init__(self, *, wanted: bool | None) -> None:
        self._wanted = wanted
        self._batches: WeakKeyDictionary[Transaction, Held] = WeakKeyDictionary()

    @property
    def off(self) -> bool:
        return self._wanted is False

    def prepare(self, connection: Transaction) -> None:
        if not self.off:
            position.prepare(connection)

    def look(self, tx: Transaction, shape: Shape, op: Op) -> None:
        """Learn of a table how its rows' positions are kept."""
        if self.off:
            return
        shape.keyed_otherwise = position.marked(tx, shape.full_name)
        if shape.respelt:
            shape.store = _own_store(tx, shape, op)

    def see_source(self, tx: Transaction, op: Op) -> None:
        """Keep the source that a record names."""
        if self.off or not (op.record.headers or op.partitions):
            return
        position.note_source(tx, op)
        held = self._batches.get(tx)
        if held is not None:
            held.source_changed()

    def begin(self, tx: Transaction, ops: Iterable[tuple[Op, Shape]]) -> None:
        """Lock the positions of the rows that these ops write."""
        wanted: dict[Store, list[Texts]] = {}
        for op, shape in ops:
            if self._settled(shape, op):
                continue
            for key in _keys(shape, op):
                if self._keeps(shape, op, key):
                    texts = position.key_texts(shape.store, shape.full_name, key)
                    wanted.setdefault(shape.store, []).append(texts)
        if wanted:
            held = Held()
            held.take(tx, wanted)
            self._batches[tx] = held

    def give_up(self, tx: Transaction) -> None:
        """Forget what a former transaction held: its positions did not move."""
        self._batches.pop(tx, None)

    def end(self, tx: Transaction) -> None:
        """Write the positions that moved; the transaction is to commit."""
        held = self._batches.pop(tx, None)
        if held is not None:
            held.write(tx)

    def same(self, rows: Rows, old: Row, new: Row) -> bool:
        """Tell whether an Update left the key as it was, or spelt it anew."""
        if old == new or not rows.shape.respelt:
            return old == new
        shape, held = rows.shape, self._batches.get(rows.tx)
        known = None
        if held is not None:
            known = held.same(shape.store, shape.full_name, old, new)
        return rows.same_key(old, new) if known is None else known

    def newest(self, rows: Rows, op: Op, key: Row | None) -> bool:
        """Tell whether no newer op wrote the row; keep this one's position."""
        tx, shape = rows.tx, rows.shape
        if key is None or not self._keeps(shape, op, key):
            return True
        held = self._batches.get(tx)
        newest = None if held is None else held.note(tx, shape.store, op, key)
        return position.note(tx, shape.store, op, key) if newest is None else newest

    def key_moves(self, rows: Rows) -> None:
        """Keep positions of the whole table from now on, in other instances too."""
        if self._wanted is None and not rows.shape.keyed_otherwise:
            position.mark(rows.tx, rows.shape.full_name)
            rows.shape.keyed_otherwise = True

    def forget(self, rows: Rows) -> None:
        if not self.off:
            position.forget(rows.tx, rows.shape.store, rows.shape.full_name)

    def _settled(self, shape: Shape, op: Op) -> bool:
        """Tell whether nothing of this op is to be looked at beforehand."""
        kept = self._wanted or shape.keyed_otherwise or shape.respelt
        return not kept and op.record.topic in shape.proved

    def _keeps(self, shape: Shape, op: Op, key: Row) -> bool:
        """Tell whether ops of this row may lie in several partitions.

        Each op tells by itself, whatever an instance saw before: a table whose record's
        key is another has none that shows the contrary.
        """
        if self._wanted is not None:
            return self._wanted
        if shape.keyed_otherwise or shape.respelt:
            return True
        proved = op.record.topic in shape.proved
        decides = position.decides(op, key, ask=not proved)
        if decides is Decides.YES:
            shape.proved.add(op.record.topic)
        elif decides is Decides.NO:
            shape.keyed_otherwise = True
        return decides is not Decides.YES


def _keys(shape: Shape, op: Op) -> Iterator[Row]:
    """Name the rows that an op may write, as far as it tells."""
    new, old = dict(op.new.items()), dict(op.old.items())
    for row in (old, {**old, **new} if new else {}):
        if row and (key := shape.key_of(row)) is not None:
            yield key


def _own_store(tx: Transaction, shape: Shape, op: Op) -> Store:
    try:
        with tx.transaction():
            return store.own(tx, shape.full_name, shape.key_types)
    except psycopg.errors.InsufficientPrivilege:
        made = store.ddl(shape.full_name, shape.key_types)
        raise stop(
            op,
            "equal keys of it may be spelt differently, so that the positions of its"
            " rows need a table of their own, which the role may not make",
            "GRANT CREATE ON SCHEMA … to the dsn's role, or make it and grant SELECT,"
            f" INSERT, UPDATE, DELETE: {made}",
        ) from None
