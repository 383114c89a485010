"""Tables that cannot identify an updated or deleted row: the reason and the repair."""

from collections.abc import Mapping

from walstream.postgres import quoting
from walstream.postgres.catalog import TableFacts


def culprits(
    table: TableFacts, facts: Mapping[str, TableFacts]
) -> dict[str, TableFacts]:
    """Return the table, and those of its leaves, that have no usable identity.

    Of one whose identity has generated columns, they are asked for only where these are
    not published.
    """
    return {
        one.full_name: one
        for one in (table, *leaves(table, facts))
        if one.computed or not (one.full or one.identity)
    }


def leaves(table: TableFacts, facts: Mapping[str, TableFacts]) -> list[TableFacts]:
    """Return the partitions that hold the rows of a partition root."""
    if table.kind != "p":
        return []
    return [
        one for one in facts.values() if one.root == table.full_name and one.kind == "r"
    ]


def partial(
    table: TableFacts, facts: Mapping[str, TableFacts]
) -> dict[str, TableFacts]:
    """Return the leaves whose old rows do not hold what a root's rows are known by.

    Those without any identity are not among them: their rows cannot be updated.
    """
    needed = set(table.primary_key if table.full else table.identity)
    return {
        one.full_name: one
        for one in leaves(table, facts)
        if not one.full and one.identity and not needed <= set(one.identity)
    }


def reason(table: TableFacts) -> str:
    """Return why a table has none."""
    if table.computed:
        return "its replica identity has generated columns, which are not published"
    if table.replica_identity == "n":
        return "REPLICA IDENTITY NOTHING"
    if table.replica_identity == "i":
        return "the index of its replica identity is gone"
    if table.primary_key:
        return "its primary key is deferrable"
    return "it has no primary key"


def cure(table: TableFacts) -> str:
    """Write what gives it one: its primary key, or else the whole row; "": neither."""
    usable = table.primary_key and table.key_immediate and not _generated(table)
    if table.computed and not usable:
        return ""
    return identify(table, "DEFAULT" if usable else "FULL")


def _generated(table: TableFacts) -> bool:
    """Return whether the primary key has a generated column."""
    kinds = dict(zip(table.columns, table.numbers, strict=False))
    return any(kinds.get(name) == 0 for name in table.primary_key)


def identify(table: TableFacts, how: str) -> str:
    """Write what sets a table's replica identity."""
    return (
        f"ALTER TABLE {quoting.name(table.schema, table.name)} REPLICA IDENTITY {how};"
    )
