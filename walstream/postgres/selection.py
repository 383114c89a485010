"""Selection of tables and columns, as a source's configuration has it. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from walstream.config import PostgresSource
from walstream.config.reachable_topics import overlap
from walstream.errors import ConfigError, Repair
from walstream.postgres import quoting
from walstream.postgres.catalog import TableFacts
from walstream.records.router import matches


class Unselectable(ConfigError):
    """The publication cannot be as the configuration wants it."""


@dataclass(slots=True)
class Selection:
    """Keys `tables`, `exclude`, `columns` and `generated` of a source."""

    patterns: list[str]  # none: the publication is used as it is
    exclude: Sequence[str] = ()
    columns: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Column lists, by `schema.table`; the other tables go out whole."""
    generated: bool = False  # are stored generated columns published?

    def wants(self, name: str) -> bool:
        """Return whether a table of this name is to be published."""
        return self._matches(name) and not self.excludes(name)

    def leaves_out(self, name: str) -> bool:
        """Return whether `exclude` alone keeps a table out."""
        return self._matches(name) and self.excludes(name)

    def excludes(self, name: str) -> bool:
        return any(matches(pattern, name) for pattern in self.exclude)

    def _matches(self, name: str) -> bool:
        return any(matches(pattern, name) for pattern in self.patterns)

    def columns_of(self, table: TableFacts) -> list[str]:
        """Return the column list of a table, in its order; []: it goes out whole."""
        listed = self.columns.get(table.full_name, ())
        return [name for name in table.columns if name in listed]

    def unsent(self, table: TableFacts, *, generated: bool) -> bool:
        """Return whether generated columns keep updates from being published.

        `generated`: stored ones are published, as are those of a column list.
        """
        if table.computed == "s":
            listed = table.full_name in self.columns and not table.full
            return not (generated or listed)
        return bool(table.computed)

    def misfit(self, table: TableFacts, tables: Mapping[str, TableFacts]) -> str:
        """Return why PostgreSQL could not publish the column list; "": it can.

        `tables` are all: an UPDATE of a root is checked by its partition's identity.
        """
        listed = self.columns.get(table.full_name)
        if listed is None:
            return ""
        if unknown := [name for name in listed if name not in table.columns]:
            return f"`columns` names {_list(unknown)}, which it does not have"
        if not table.identified:
            return ""  # only its inserts are published
        leaves = (
            leaf
            for leaf in tables.values()
            if leaf.root == table.full_name and leaf.kind == "r"
        )
        refusals = [_refusal(table, listed), *(_refusal(one, listed) for one in leaves)]
        return next(filter(None, refusals), "")


def _refusal(table: TableFacts, listed: Sequence[str]) -> str:
    """Return why PostgreSQL would refuse updates with these columns; "": not."""
    partition = f"its partition {table.full_name!r}" if table.root else ""
    if table.full:
        return (
            f"{partition or 'it'} is under REPLICA IDENTITY FULL, where PostgreSQL "
            "refuses updates and deletes with a column list"
        )
    if lacking := [name for name in table.identity if name not in listed]:
        whose = f"the replica identity of {partition}" if partition else ""
        return (
            f"`columns` leaves out {_list(lacking)} of "
            f"{whose or 'its replica identity'}"
        )
    return ""


EVERYTHING: Final = Selection(["*.*"])


def selection_of(source: PostgresSource) -> Selection:
    """Return what a source's configuration says."""
    return Selection(
        list(source.tables),
        source.exclude,
        source.columns,
        generated=source.generated == "stored",
    )


def misfits(
    wanted: Selection, facts: Mapping[str, TableFacts]
) -> Iterator[Unselectable]:
    """Yield the column lists that a table does not take."""
    for name in sorted(wanted.columns.keys() & facts.keys()):
        why = wanted.misfit(facts[name], facts) if wanted.wants(name) else ""
        if why:
            yield Unselectable(
                f"table {name!r}: {why}",
                hint="correct the table's list in `columns`: PostgreSQL needs the "
                "columns of the replica identity to publish updates and deletes",
            )


def unselectable(
    wanted: Selection, publication: str, schemas: Sequence[str], *, all_tables: bool
) -> Unselectable | None:
    """Return why a publication that names no tables cannot follow the selection.

    What it publishes whole, PostgreSQL publishes without exceptions.
    """
    reach = ["*.*"] if all_tables else [f"{schema}.*" for schema in schemas]
    odd = [
        entry
        for entry in (*wanted.exclude, *wanted.columns)
        if any(overlap(entry, whole) for whole in reach)
    ]
    if not odd:
        return None
    what = "FOR ALL TABLES" if all_tables else f"of whole schemas: {_list(schemas)}"
    name = quoting.name(publication)
    names = ", ".join(map(quoting.name, schemas))
    return Unselectable(
        f"publication {publication!r} is {what}, so {_list(odd)} of `exclude` or "
        "`columns` cannot be kept to",
        hint="PostgreSQL has no exceptions from those: publish tables by their names, "
        "or set another `publication` and let walstream create it",
        repair=Repair(
            sql=""
            if all_tables
            else f"ALTER PUBLICATION {name} DROP TABLES IN SCHEMA {names};",
            then="walstream positions reset SOURCE, unless it never streamed",
        ),
    )


def _list(names: Sequence[str]) -> str:
    return ", ".join(map(repr, names))
