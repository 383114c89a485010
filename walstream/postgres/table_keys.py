"""Keys of a source's tables: learned from the catalog, and stored."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import structlog

from walstream.errors import Restart
from walstream.lsn import NEVER, Lsn, show
from walstream.pipeline.pgoutput.messages import Relation
from walstream.pipeline.ports import StateStore
from walstream.pipeline.root_key import ROOTS, Place, RootKeys
from walstream.pipeline.row_key import KEYS, KeyHistory, KeySet
from walstream.pipeline.state_writer import StateWriter
from walstream.postgres import partition_root
from walstream.postgres.catalog import Looked, TableFacts
from walstream.postgres.connection import Connection
from walstream.postgres.keyless_tables import KeylessTables
from walstream.telemetry.fields import LSN, TABLE

PartitionKeys = Callable[[str, str], tuple[str, ...]]
"""(schema, table) -> the partition key columns of all sinks"""
_log = structlog.get_logger()


class KeyRules(Protocol):
    """Keys of a source's tables, and the LSN from which each is in force."""

    def history(self, full_name: str) -> KeyHistory | None:
        """Return a table's; None: it was not learned yet."""

    def learn(self, facts: Mapping[str, TableFacts], end: Lsn, oldest: Lsn, /) -> None:
        """Take what was found of these tables; `end` was read behind that."""

    def knows(self, relation: Relation, place: Place) -> bool:
        """Return whether nothing is to be learned from this description."""

    def meet(self, relation: Relation, looked: Looked, place: Place, /) -> None:
        """Take what was found of a relation that the stream described.

        Nothing from `place` on was sent.
        """

    def watch(self, connection: Connection, /) -> None:
        """Raise Restart where keys are others, of which the stream does not tell."""

    def regained(self) -> Sequence[int]:
        """List tables, by oid, that have a key, and of which rows went out without."""

    def told(self, oid: int) -> None:
        """Note that something is done about such a table."""


class KeyBook:
    """The key histories of a source's tables, kept with its position."""

    def __init__(self, positions: StateStore, partition_keys: PartitionKeys) -> None:
        self._positions = positions
        self._writer = StateWriter(positions)
        self._partition_keys = partition_keys
        self._histories: dict[str, KeyHistory] = {}
        self._looked: set[int] = set()  # tables, by oid
        self._roots: dict[int, RootKeys] = {}
        self._unsent: Lsn = 0  # from here on nothing was sent by an earlier stream
        self._keyless = KeylessTables(positions)
        self.regained = self._keyless.regained
        self.told = self._keyless.told

    def history(self, full_name: str) -> KeyHistory | None:
        return self._histories.get(full_name)

    def knows(self, relation: Relation, place: Place) -> bool:
        if f"{relation.namespace}.{relation.name}" not in self._histories:
            return False
        keyed = self._is_keyed(relation, None)
        if not self._keyless.knows(relation.oid, keyed=keyed):
            return False
        root = self._roots.get(relation.oid)
        if root is not None:
            return root.agrees(relation, place)
        return relation.oid in self._looked and not self._news(relation, place)

    def _news(self, relation: Relation, place: Place) -> bool:
        """Return whether a table is described with another key than is known of it."""
        marked = _marked(relation)
        history = self._histories[f"{relation.namespace}.{relation.name}"]
        columns = tuple(column.name for column in relation.columns)
        known = marked is None or history.tells(place, relation.oid, columns, marked)
        return not known

    def learn(
        self,
        facts: Mapping[str, TableFacts],
        end: Lsn,
        oldest: Lsn,
        unsent: Lsn = NEVER,
    ) -> None:
        """Take what was found of these tables; store what is new.

        It counts from `end` on, which was read behind that: a change that was
        found lies below, and what was committed before the change is not read under it.
        What counted below `oldest`, where no replay can begin, may be forgotten.
        Nothing was sent from `unsent` on, if that is known.
        """
        self._unsent = min(end, unsent)
        changed: dict[str, object] = {}
        for full_name, table in facts.items():
            history, is_new = self._find(full_name, oldest)
            now = self._set_of(table, full_name, 0 if is_new else end)
            if is_new:
                history = KeyHistory([now])
            if is_new or history.change(now):
                changed |= KEYS.of(full_name).entry(history.stored)
            self._keep(full_name, history)
            self._looked.add(table.oid)
            if is_new and not (table.primary_key if table.full else table.identity):
                self._keyless.meet(table.oid, keyed=bool(now.partition_key))
            if table.kind == "p":
                root = self._root(table.oid)
                root.forget_below(oldest)
                if root.look(partition_root.key_of(table), end):
                    changed |= ROOTS.of(str(table.oid)).entry(root.stored)
        self._writer.write(changed)

    def meet(self, relation: Relation, looked: Looked, place: Place) -> None:
        """Take what was found of a relation; store what is new.

        A change counts from where the server's WAL was behind the look, beyond all that
        was streamed: it may lie behind the transaction at hand, whose rows, like those
        before them, then belong to the key of before. Where the row's columns say that
        it lies in front, they find the new key themselves (see keys.py).
        """
        full_name = f"{relation.namespace}.{relation.name}"
        history, is_new = self._find(full_name, 0)
        columns = tuple(column.name for column in relation.columns)
        if looked.facts is None:
            partition_key = self._partition_keys(relation.namespace, relation.name)
            gone = KeySet(looked.after, (), partition_key, columns, relation.oid)
            if is_new:
                history = KeyHistory([replace(gone, from_lsn=0)])
            changed = history.meet_gone(gone)
            _let_go(history, relation, gone, place, guessed=is_new or changed)
            found = None
        else:
            from_lsn = 0 if is_new else looked.after
            found = self._set_of(looked.facts, full_name, from_lsn)
            if is_new:
                history = KeyHistory([found])
            changed = history.change(found)
            seen = KeySet(looked.after, columns=columns, oid=relation.oid)
            changed = history.settle(place, seen) or changed
        marked = _marked(relation)
        if marked is not None and relation.oid not in self._roots:
            told = history.tell(place, relation.oid, columns, marked, found)
            changed = told or changed
        self._looked.add(relation.oid)
        documents: dict[str, object] = {}
        if is_new or changed:
            documents |= KEYS.of(full_name).entry(history.stored)
        if self._meet_root(relation, looked, place):
            root = self._roots[relation.oid].stored
            documents |= ROOTS.of(str(relation.oid)).entry(root)
        self._writer.write(documents)
        keyed = self._is_keyed(relation, looked.facts)
        self._keyless.meet(relation.oid, keyed=keyed)
        self._keep(full_name, history)

    def _is_keyed(self, relation: Relation, facts: TableFacts | None) -> bool:
        """Return whether the rows of a description have a key of their own."""
        if self._partition_keys(relation.namespace, relation.name):
            return True
        if relation.replica_identity == "f":
            return facts is None or bool(facts.primary_key)
        return any(column.is_key for column in relation.columns)

    def _meet_root(self, relation: Relation, looked: Looked, place: Place) -> bool:
        """Take the key that a partition root was described with; tell of a change."""
        oid, facts = relation.oid, looked.facts
        partitioned = facts is not None and facts.kind == "p"
        stored = ROOTS.of(str(oid))
        if not (partitioned or oid in self._roots or stored.read(self._positions)):
            return False
        root = self._root(oid)
        changed = root.describe(relation, place, self._unsent)
        if facts is not None:
            changed = root.look(partition_root.key_of(facts), looked.after) or changed
        return changed

    def watch(self, connection: Connection) -> None:
        """Raise Restart where a root's key or name is another, and nothing says so.

        The next stream's look has it count from where the server is then: all that this
        one sent is below.
        """
        for oid, found in partition_root.look(connection, list(self._roots)).items():
            root = self._roots[oid]
            if not root.lacks(found):
                continue
            was, now = root.newest.full_name, found.full_name
            if root.newest.names and was != now:
                raise Restart(f"partition root {was!r} is {now!r} now")
            raise Restart(f"partition root {now!r} has another REPLICA IDENTITY")

    def _root(self, oid: int) -> RootKeys:
        if oid not in self._roots:
            stored = ROOTS.of(str(oid)).read(self._positions)
            self._roots[oid] = RootKeys(stored or ())
        return self._roots[oid]

    def _keep(self, full_name: str, history: KeyHistory) -> None:
        history.roots = self._roots
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
            partial=table.partial,
            vague=table.partial or not table.key_immediate,
            numbers=table.numbers,
        )

    def _find(self, full_name: str, oldest: Lsn) -> tuple[KeyHistory, bool]:
        known = self._histories.get(full_name)
        if known is not None:
            return known, False
        stored = KEYS.of(full_name).read(self._positions)
        if stored is None:
            return KeyHistory([]), True
        history = KeyHistory(stored)
        history.forget_below(oldest)
        return history, False


def _let_go(
    history: KeyHistory,
    relation: Relation,
    gone: KeySet,
    place: Place,
    *,
    guessed: bool,
) -> None:
    """Let rows of a table that is gone pass; say so where they have no key.

    `guessed`: nothing was known of it.
    """
    wanted = place[0], gone.oid, gone.columns, place[1]
    unknown = guessed or history.primary_key(*wanted) is None
    history.let_go_of(gone.oid, gone.columns)
    if relation.replica_identity != "f" or gone.partition_key:
        return
    if unknown and not history.primary_key(*wanted):
        _log.warning(
            "rows of a dropped table are sent without a key: it is no longer known",
            **{TABLE: f"{relation.namespace}.{relation.name}", LSN: show(place[0])},
        )


def _marked(relation: Relation) -> tuple[str, ...] | None:
    """Return what a description marks of the primary key; None: of another key."""
    if relation.replica_identity != "d":
        return None
    return tuple(column.name for column in relation.columns if column.is_key)
