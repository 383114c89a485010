"""A writer on tables of which a publication decides what is decoded.

Rows of a partition lie in a leaf, and go out as those of its root; updates of what
cannot be identified are refused, as the server refuses them.
"""

from collections.abc import Sequence
from typing import Final

from tests.simulation.catalog import SimCatalog
from tests.simulation.tables import (
    KEYS,
    TOASTED,
    Row,
    ShapeVersion,
    SimTable,
    WalTransaction,
    Writer,
)
from walstream.op import Kind
from walstream.pipeline.pgoutput import Delete, Insert, Truncate, Update
from walstream.row import UNCHANGED, Value
from walstream.testing import encode, wal_data

_CHANGES: Final = frozenset(("update", "delete"))


class PublishedWriter(Writer):
    """Writes under one catalog."""

    def __init__(
        self, tables: Sequence[SimTable], lsn: int, seed: int, catalog: SimCatalog
    ) -> None:
        named = [one for one in tables if catalog.root(one.oid) is None]
        super().__init__(named, lsn, seed)
        self._every = tables
        self._catalog = catalog
        self._above: dict[int, tuple[SimTable, ShapeVersion]] = {}

    def write(self, xid: int, commit_time: int) -> WalTransaction:
        done = super().write(xid, commit_time)
        done.above, done.version = self._above, self._catalog.version
        done.states = [(one, dict(one.rows), one.shape) for one in self._every]
        return done

    # where rows lie, and what becomes of them

    def _holder(self, table: SimTable, key: str) -> SimTable | None:
        """Return the table that has a key's rows; None: there is none now."""
        if not table.leaves:
            return table
        leaf = table.leaves[int(key) % len(table.leaves)]
        return leaf if self._catalog.root(leaf.oid) == table.oid else None

    def _holders(self, table: SimTable) -> list[SimTable]:
        if not table.leaves:
            return [table]
        return [one for one in table.leaves if self._catalog.root(one.oid) is not None]

    def _free(self, table: SimTable, key: str) -> bool:
        """Return whether a row of this key may be made."""
        holder = self._holder(table, key)
        if holder is None or key in holder.rows:
            return False
        return table.bound is None or int(key) % table.bound[1] == table.bound[0]

    def _sent(self, holder: SimTable, operation: str) -> SimTable | None:
        """Return as which table's it goes out; None: it does not."""
        if operation not in self._catalog.operations(holder.oid):
            return None
        oid = self._catalog.sent_as(holder.oid)
        (found,) = (one for one in self._every if one.oid == oid)
        return found

    def _refused(self, holder: SimTable) -> bool:
        published = _CHANGES & self._catalog.operations(holder.oid)
        return bool(published) and not holder.identified

    def _publish(
        self, holder: SimTable, sent: SimTable, message: Insert | Update | Delete
    ) -> None:
        if sent is not holder:
            # which nulls of an old row are real depends on the leaves that a
            # connection met before: docs/operations.md, "Partitions"
            self._reads |= not isinstance(message, Insert) and message.old is not None
            self._above[len(self._frames)] = sent, sent.shape
        self._frame(holder, message)

    # steps

    def _put(self, table: SimTable) -> None:
        key = str(self._random.randrange(KEYS))
        holder = self._holder(table, key)
        if holder is not None and key in holder.rows:
            self._update(holder, key, key)
        elif holder is not None and self._free(table, key):
            self._insert(holder, key)

    def _insert(self, holder: SimTable, key: str) -> None:
        row = holder.rows[key] = self._row(holder, key)
        if sent := self._sent(holder, "insert"):
            values = self._values(sent, row)
            self._publish(holder, sent, Insert(sent.oid, values, toasted=False))
            self._expect(Kind.INSERT, sent, key)

    def _move(self, table: SimTable) -> None:
        free = [key for key in map(str, range(KEYS)) if self._free(table, key)]
        rows = [(one, key) for one in self._holders(table) for key in one.rows]
        if not rows or not free:
            return
        (holder, before), after = self._random.choice(rows), self._random.choice(free)
        target = self._holder(table, after)
        if target is holder:
            self._update(holder, before, after)
        elif target is not None and not self._refused(holder):
            # to another partition: as the executor does it
            self._remove(holder, before)
            self._insert(target, after)

    def _update(self, table: SimTable, before: str, after: str) -> None:
        if self._refused(table):
            return
        old = table.rows.pop(before)
        new, kept = self._changed(table, old, after)
        table.rows[after] = new
        sent = self._sent(table, "update")
        if sent is None:
            return
        values = self._values(sent, new)
        if kept:
            values[sent.shape.columns.index(TOASTED)] = UNCHANGED
        old_values: list[Value] | None = None
        if table.shape.identity == "f":
            old_values = self._values(sent, old)
        elif before != after:
            old_values = self._key_alone(sent, before)
            self._reads |= kept
        whole = sent.shape.identity == "f"
        message = Update(sent.oid, old_values, whole, values, kept)
        self._publish(table, sent, message)
        if before == after:
            self._expect(Kind.UPDATE, sent, after)
        else:
            self._expect(Kind.DELETE, sent, before)
            self._expect(Kind.INSERT, sent, after)

    @staticmethod
    def _key_alone(table: SimTable, key: str) -> list[Value]:
        return [key if name == "id" else None for name in table.shape.columns]

    def _delete(self, table: SimTable) -> None:
        rows = [(one, key) for one in self._holders(table) for key in one.rows]
        if rows:
            holder, key = self._random.choice(rows)
            if not self._refused(holder):
                self._remove(holder, key)

    def _remove(self, holder: SimTable, key: str) -> None:
        old: Row = holder.rows.pop(key)
        if sent := self._sent(holder, "delete"):
            values = self._key_alone(sent, key)
            if holder.shape.identity == "f":
                values = self._values(sent, old)
            whole = sent.shape.identity == "f"
            self._publish(holder, sent, Delete(sent.oid, values, whole))
            self._expect(Kind.DELETE, sent, key)

    def _truncate(self, table: SimTable) -> None:
        """Truncate one or two tables: a root with what belongs to it."""
        named = dict.fromkeys((table, self._random.choice(self._tables)))
        every = [one for root in named for one in self._with_leaves(root)]
        sent = [one for one in every if self._sent(one, "truncate") is one]
        for one in every:
            one.rows.clear()
            one.file += 1
        if sent:
            message = Truncate(0, tuple(one.oid for one in sent))
            shapes = tuple((one, one.shape) for one in sent)
            self._frames.append((shapes, wal_data(encode(message), self._lsn)))
        for one in sent:
            self._expect(Kind.TRUNCATE, one, "")

    def _with_leaves(self, table: SimTable) -> list[SimTable]:
        return [table, *(self._holders(table) if table.leaves else ())]

    def _alter(self, table: SimTable) -> None:
        """Alter a table; a root's columns are those of each partition of it."""
        holders = self._holders(table)
        if table.leaves:
            table = self._random.choice((table, table, *holders))
        whole = len(holders) == len(table.leaves or holders)
        if not table.shape.key or (table.bound is not None or not whole):
            self._identify(table)
            return
        columns = table.shape.columns
        super()._alter(table)
        if table.keyed:
            table.shape = table.shape._replace(identity="d")
        self._void(len(self._frames), *table.leaves)
        for leaf in table.leaves:
            self._follow(leaf, columns, table.shape.columns)

    @staticmethod
    def _identify(table: SimTable) -> None:
        if table.shape.key and not table.keyed:
            identity = "d" if table.shape.identity == "f" else "f"
            table.shape = table.shape._replace(identity=identity)

    @staticmethod
    def _follow(
        leaf: SimTable, before: tuple[str, ...], after: tuple[str, ...]
    ) -> None:
        for name in after:
            if name not in before:
                leaf.number(name)
        kept = tuple(name for name in leaf.shape.columns if name in after)
        added = tuple(name for name in after if name not in before)
        leaf.shape = leaf.shape._replace(columns=kept + added)
        for key, row in leaf.rows.items():
            leaf.rows[key] = {name: row.get(name) for name in leaf.shape.columns}
