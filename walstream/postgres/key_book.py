"""What decides the keys of a source's tables: learned from the catalog, and kept."""

from collections.abc import Callable, Mapping
from typing import Protocol

from walstream.keys import KeyHistory, KeySet
from walstream.lsn import Lsn
from walstream.pgoutput.messages import Relation
from walstream.ports import Positions
from walstream.postgres.catalog import Looked, TableFacts

PartitionKeys = Callable[[str, str], tuple[str, ...]]
"""(schema, table) -> the partition key columns of all sinks"""


class Keys(Protocol):
    """What decides the keys of a source's tables, and from where on."""

    def history(self, full_name: str) -> KeyHistory | None:
        """Give a table's; None: it was not learned yet."""

    def learn(
        self, facts: Mapping[str, TableFacts], flush_lsn: Lsn, oldest: Lsn
    ) -> None:
        """Take what counts for these tables from `flush_lsn` on."""

    def meet(self, relation: Relation, looked: Looked, place: Lsn) -> None:
        """Take what was found of a relation that the stream described.

        No transaction from `place` on was sent.
        """


class KeyBook:
    """The key histories of a source's tables, kept with its position."""

    def __init__(self, positions: Positions, partition_keys: PartitionKeys) -> None:
        self._positions = positions
        self._partition_keys = partition_keys
        self._histories: dict[str, KeyHistory] = {}
        self._looked: dict[int, Lsn] = {}  # by table: as of where it was last found

    def history(self, full_name: str) -> KeyHistory | None:
        return self._histories.get(full_name)

    def learn(
        self, facts: Mapping[str, TableFacts], flush_lsn: Lsn, oldest: Lsn
    ) -> None:
        """Take what counts for these tables from `flush_lsn` on; store what is new.

        What counted below `oldest`, where no replay can begin, may be forgotten.
        """
        changed = {}
        for full_name, table in facts.items():
            history, is_new = self._find(full_name, oldest)
            now = self._set_of(table, full_name, 0 if is_new else flush_lsn)
            if is_new:
                history = KeyHistory([now])
            if is_new or history.change(now):
                changed[f"keys/{full_name}"] = history.to_json()
            self._histories[full_name] = history
            self._looked[table.oid] = flush_lsn
        if changed:
            self._positions.write(changed)

    def meet(self, relation: Relation, looked: Looked, place: Lsn) -> None:
        """Take what was found of a relation; store what is new.

        A change counts from `place` on where the table was found as before at an
        earlier LSN: then it lies in between, and brought this very description. Else
        from where the server's WAL is now, beyond all that was streamed.
        """
        full_name = f"{relation.namespace}.{relation.name}"
        history, is_new = self._find(full_name, 0)
        columns = tuple(column.name for column in relation.columns)
        if looked.facts is None:
            partition_key = self._partition_keys(relation.namespace, relation.name)
            gone = KeySet(looked.after, (), partition_key, columns, relation.oid)
            if is_new:
                history = KeyHistory([KeySet(0, (), partition_key)])
            changed = history.meet_gone(gone)
        else:
            before = self._looked.get(relation.oid)
            fresh = before is not None and place > before
            from_lsn = place if fresh else looked.after
            now = self._set_of(looked.facts, full_name, 0 if is_new else from_lsn)
            if is_new:
                history = KeyHistory([now])
            changed = history.change(now)
            seen = KeySet(looked.after, columns=columns, oid=relation.oid)
            changed = history.settle(place, seen) or changed
            self._looked[relation.oid] = looked.before
        if is_new or changed:
            self._positions.write({f"keys/{full_name}": history.to_json()})
        self._histories[full_name] = history

    def _set_of(self, table: TableFacts, full_name: str, from_lsn: Lsn) -> KeySet:
        """`full_name` is what the stream calls it: it may be renamed by now."""
        schema, name = full_name.split(".", 1)
        return KeySet(
            from_lsn=from_lsn,
            primary_key=table.primary_key,  # counts under FULL alone
            partition_key=self._partition_keys(schema, name),
            columns=table.columns,
            oid=table.oid,
        )

    def _find(self, full_name: str, oldest: Lsn) -> tuple[KeyHistory, bool]:
        known = self._histories.get(full_name)
        if known is not None:
            return known, False
        stored = self._positions.read(f"keys/{full_name}")
        if stored is None:
            return KeyHistory([]), True
        history = KeyHistory.from_json(stored)
        history.forget_below(oldest)
        return history, False
