"""The relations of one connection, as its messages described them: shapes of rows.

What is the same for all rows of a table is made once, with its Relation message.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from walstream.errors import WalstreamError
from walstream.formats.column_type import written_as
from walstream.lsn import Lsn
from walstream.op import ColumnFacts, Table
from walstream.pipeline.column_history import NO_FACTS, FactHistory, shape_of
from walstream.pipeline.old_row import Blind, Leaves, unknown_key
from walstream.pipeline.pgoutput.messages import Relation, Type
from walstream.pipeline.root_key import Place, RootKey
from walstream.pipeline.row_key import KeyHistory
from walstream.row import OMITTED, Value
from walstream.telemetry.meter import TableMeter, TableMeters


@dataclass(slots=True, init=False)
class RelationShape:
    """A relation as this connection described it, under one set of keys."""

    relation: Relation
    history: KeyHistory
    table: Table
    split: tuple[int, ...]  # columns whose change splits an update
    omitted: list[Value]  # such a row, without them
    whole: bool  # may a null in an old row marked 'O' be believed?
    fuller: bool  # may an old row marked 'K' carry more than the key?
    blind: tuple[Blind, ...]  # whose old rows do not carry all of `split`
    meter: TableMeter
    width: int  # how many columns a row has

    def __init__(
        self,
        relation: Relation,
        history: KeyHistory,
        table: Table,
        split: tuple[int, ...],
        meter: TableMeter,
    ) -> None:
        self.relation = relation
        self.history = history
        self.table = table
        self.split = split
        self.omitted = [OMITTED] * len(relation.columns)
        self.whole = True
        self.fuller = False
        self.blind = ()
        self.meter = meter
        self.width = len(table.columns)


class Relations:
    """Relations by oid; rows are looked up in `shapes` alone."""

    def __init__(self) -> None:
        self.shapes: dict[int, RelationShape] = {}
        self.meters = TableMeters()
        self._unknown: dict[int, RelationShape] = {}  # whose primary key is not known
        self._tables: dict[int, Table] = {}
        self._facts: dict[int, FactHistory] = {}  # where some format asks for them
        self._types: dict[int, Type] = {}  # those that are not built in
        self._leaves = Leaves()
        self._announced: tuple[Place, int] = ((0, 0), 0)  # where, and which relation
        self._held: tuple[RelationShape, Relation] | None = (
            None  # a root's, and its leaf?
        )
        self._boundary: Lsn | None = None  # the next LSN at which some keys change
        self._lsn: Lsn = 0
        self._place: Place = (0, 0)  # as of which shapes are made

    def reach(self, lsn: Lsn) -> None:
        """Begin a transaction: keys that change there are in force."""
        self.let_go()
        self._lsn = lsn
        if self._boundary is not None and lsn >= self._boundary:
            self._boundary = None
            self._place = lsn, 0
            for shape in [*self.shapes.values(), *self._unknown.values()]:
                self._shape(shape.relation, shape.history)

    def name_type(self, message: Type) -> None:
        """Store the name of a type, which arrives before the relation that needs it."""
        self._types[message.oid] = message

    def _written_as(self, oid: int) -> int:
        named = self._types.get(oid)
        return written_as(oid, named.namespace, named.name) if named else oid

    def describe(
        self,
        relation: Relation,
        history: KeyHistory,
        place: Place,
        facts: FactHistory = NO_FACTS,
    ) -> Table:
        """Store a Relation message, with the keys and facts in force for its table.

        Two that come together, and then a row of the first: that is a partition root,
        and the row came from the other, its leaf. So the first is held until that row.
        """
        self.let_go()
        self._place = place
        if facts is not NO_FACTS:
            self._facts[relation.oid] = facts
        there, before = self._announced
        table = self._shape(relation, history)
        if there == place and before not in {0, relation.oid}:
            root = self.shapes.pop(before, None)
            if root is not None:
                self._held = root, relation
        self._announced = place, relation.oid
        return table

    def learn(self, oid: int, facts: FactHistory, place: Place) -> Table:
        """Let rows from a place on have other facts; they are of the same shape."""
        shape = self.shapes[oid]
        self._place = place
        self._facts[oid] = facts
        return self._shape(shape.relation, shape.history)

    def let_go(self) -> None:
        """Accept a held relation: it was not a partition root."""
        if self._held is not None:
            shape = self._held[0]
            self.shapes[shape.relation.oid] = shape
            self._held = None

    def _shape(self, relation: Relation, history: KeyHistory) -> Table:
        oid = relation.oid
        names = tuple([column.name for column in relation.columns])
        described = told = RootKey.described(relation)
        if (root := history.roots.get(oid)) is not None:
            kept = root.at(self._place)
            told = kept if kept is not None and kept.fits(names) else told
        named = told if told.names else described
        full = told.full
        lsn, seq_id = self._place
        key = history.primary_key(lsn, oid, names, seq_id) if full else ()
        key_names = set(key or ()) if full else told.columns
        row_key = tuple(
            [
                index
                for index, column in enumerate(relation.columns)
                if column.name in key_names
            ]
        )
        partition_key = {
            names.index(name)
            for name in history.at(self._lsn).partition_key
            if name in names
        }
        table = self._table(relation, named, names, row_key)
        split = tuple(sorted(partition_key.union(row_key)))
        shape = RelationShape(
            relation, history, table, split, self.meters.of(table.full_name)
        )
        shape.whole = self._leaves.whole(oid)
        shape.fuller = self._leaves.fuller(oid)
        needed = [names[index] for index in split]
        shape.blind = tuple(self._leaves.blind(relation, needed, key_names))
        known, other = self.shapes, self._unknown
        if key is None:
            known, other = other, known
        other.pop(oid, None)
        known[oid] = shape
        self._expect(history.boundaries())
        if (facts := self._facts.get(oid)) is not None:
            self._expect(facts.boundaries())
        if root is not None:
            self._expect(root.boundaries())
        return table

    def _table(
        self,
        relation: Relation,
        named: RootKey,
        columns: tuple[str, ...],
        key: tuple[int, ...],
    ) -> Table:
        """Return the Table of before, if it is the same: what sinks keep is by Table.

        pgoutput describes a relation again after each ANALYZE, and a root with each of
        its leaves.
        """
        oids = tuple([self._written_as(one.type_oid) for one in relation.columns])
        modifiers = tuple([one.type_modifier for one in relation.columns])
        facts = self._facts_of(relation)
        known = self._tables.get(relation.oid)
        if (
            known is not None
            and known.columns == columns
            and known.key == key
            and known.type_oids == oids
            and known.modifiers == modifiers
            and known.facts == facts
            and (known.schema, known.name) == (named.schema, named.table)
        ):
            return known
        table = Table(
            schema=named.schema,
            name=named.table,
            columns=columns,
            key=key,
            type_oids=oids,
            oid=relation.oid,
            modifiers=modifiers,
            facts=facts,
        )
        self._tables[relation.oid] = table
        return table

    def _facts_of(self, relation: Relation) -> tuple[ColumnFacts, ...]:
        history = self._facts.get(relation.oid)
        if history is None:
            return ()
        found = history.at(self._place, shape_of(relation))
        return found.columns if found is not None else ()

    def _expect(self, boundaries: Iterable[Lsn]) -> None:
        for boundary in boundaries:
            if boundary > self._lsn and (
                self._boundary is None or boundary < self._boundary
            ):
                self._boundary = boundary

    def missing(self, oid: int, place: Place) -> RelationShape:
        """Return a shape that was held until its first row; raise if it is unknown."""
        held = self._held
        self.let_go()
        if held is not None and held[0].relation.oid == oid:
            root, leaf = held
            if self._announced == (place, leaf.oid):
                self._leaves.meet(oid, leaf)
                self._place = place
                self._shape(root.relation, root.history)
            return self.shapes[oid]
        if (unknown := self._unknown.get(oid)) is not None:
            raise unknown_key(unknown.relation, self._lsn)
        raise WalstreamError(
            f"a row of relation {oid} came before its Relation message",
            hint="nothing was confirmed; report this with the server's version",
        )
