"""Contents of old rows: of a table, and of the leaves of a partition root.

An UPDATE or DELETE logs the old row as the replica identity of the *leaf* says, and
pgoutput sends it as the root's, marked as the root's identity says. The leaf's own
Relation message comes behind the root's, before the leaf's first row and again after
each change: so the stream itself tells what the old rows carry, as of each row.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from walstream.errors import RESET, HistoryError, Repair
from walstream.lsn import Lsn, show
from walstream.pipeline.pgoutput.messages import Relation
from walstream.records.key import THEN_RESET, identify_full


@dataclass(frozen=True, slots=True)
class Blind:
    """A table, or a root's leaf, whose old rows lack what keys are made of."""

    schema: str
    name: str
    lacking: tuple[str, ...]


class Leaves:
    """The leaves of partition roots, as one connection described them last."""

    def __init__(self) -> None:
        self._of: dict[int, dict[int, Relation]] = {}  # by root, then by leaf

    def meet(self, root: int, leaf: Relation) -> None:
        """Note that the next rows of this root come from this leaf."""
        self._of.setdefault(root, {})[leaf.oid] = leaf

    def whole(self, oid: int) -> bool:
        """Return whether an old row marked complete is: its nulls are then real."""
        leaves = self._of.get(oid, {}).values()
        return all(leaf.replica_identity == "f" for leaf in leaves)

    def fuller(self, oid: int) -> bool:
        """Return whether an old row may carry more than its root's key."""
        leaves = self._of.get(oid, {}).values()
        return any(leaf.replica_identity == "f" for leaf in leaves)

    def blind(
        self, relation: Relation, needed: Sequence[str], key: Collection[str]
    ) -> Iterator[Blind]:
        """Return the tables and leaves whose old rows lack needed columns.

        `key` is the relation's own, which a root's message may not mark.
        """
        for one in (relation, *self._of.get(relation.oid, {}).values()):
            carried = {column.name for column in one.columns if column.is_key}
            if one is relation:
                carried.update(key)
            lacking = tuple(name for name in needed if name not in carried)
            # without any identity there are no updates: PostgreSQL refuses them
            if carried and lacking:
                yield Blind(one.namespace, one.name, lacking)


def unidentified(
    op: str, table: Relation, blind: Sequence[Blind], column: str | None
) -> HistoryError:
    """Return the error of an op whose old row lacks a column of its key.

    `column` was not sent; None: no old row was sent, and the key may have changed.
    """
    found = blind or (Blind(table.namespace, table.name, (column or "",)),)
    lacking = sorted({name for one in found for name in one.lacking})
    whose = ", ".join(f"{one.schema}.{one.name}" for one in found)
    what = (
        f"column {column!r} of its key was not sent"
        if column is not None
        else f"{lacking} was not sent, so whether the key changed is not known"
    )
    return HistoryError(
        f"table '{table.namespace}.{table.name}', {op}: {what}, since the REPLICA"
        f" IDENTITY of {whose} does not hold {lacking}",
        hint="run the SQL, then start again with a backfill: what was written before "
        "the SQL can no longer be decoded",
        repair=Repair(
            sql="\n".join(identify_full(one.schema, one.name) for one in found),
            then=THEN_RESET,
        ),
    )


def unknown_key(table: Relation, lsn: Lsn) -> HistoryError:
    """Return the error of a table whose primary key at that time is unknown."""
    columns = ", ".join(column.name for column in table.columns)
    return HistoryError(
        f"table '{table.namespace}.{table.name}', a row at {show(lsn)}: its primary "
        "key was renamed or replaced more than once since walstream last looked, and "
        "under REPLICA IDENTITY FULL the stream does not show this",
        hint=f"the row's columns are {columns}: give the key's columns those names "
        "again until walstream has passed; or start again with a backfill",
        repair=RESET,
    )
