"""Changes that bring publications to what is wanted: pure."""

from collections.abc import Iterable, Iterator, Mapping

from walstream.postgres.catalog import TableFacts
from walstream.postgres.publication import Publication, PublicationPlan
from walstream.postgres.publication_change import PublicationChange
from walstream.postgres.selection import Selection


def placements(
    plan: PublicationPlan, main: Publication, inserts: Publication | None
) -> Iterator[PublicationChange]:
    """Yield what brings each table where it belongs."""
    yield PublicationChange(
        main, [one for one in plan.identified if not main.holds(one)]
    )
    if inserts is not None:
        homeless = [table for table in plan.insert_only if main.names(table)]
        missing = [one for one in plan.insert_only if not inserts.holds(one)]
        yield PublicationChange(inserts, missing, main, homeless)


def exclusions(
    wanted: Selection, found: Iterable[Publication], facts: Mapping[str, TableFacts]
) -> Iterator[PublicationChange]:
    """Yield what takes excluded tables out that were added by their names."""
    for made in found:
        for name in made.tables.values():
            if wanted.excludes(name) and name in facts:
                yield PublicationChange(made, (), made, [facts[name]])


def unwanted(
    wanted: Selection,
    found: Iterable[Publication],
    tables: Mapping[str, TableFacts],
) -> dict[str, TableFacts]:
    """Return the tables that are published though no pattern names them.

    A partition goes with its root.
    """
    there = list(found)
    more = {
        name: table
        for name, table in sorted(tables.items())
        if table.persistence == "p"
        and not (wanted.wants(name) or wanted.excludes(name))
        and not (table.root is not None and wanted.wants(table.root))
        and any(made.holds(table) for made in there)
    }
    return {name: table for name, table in more.items() if table.root not in more}


def relistings(
    wanted: Selection,
    plan: PublicationPlan,
    main: Publication,
    inserts: Publication | None,
) -> Iterator[PublicationChange]:
    """Yield what gives tables that were added by their names another column list."""
    for table in plan:
        if table.full_name not in wanted.columns:
            continue
        columns = frozenset(wanted.columns_of(table))
        in_main = main.names(table) and table.identified
        if in_main and inserts is not None and inserts.names(table):
            # of one that it was in before it had a key; both need the same list
            if main.list_of(table) != columns or inserts.list_of(table) != columns:
                yield PublicationChange(inserts, (), inserts, [table])
        elif inserts is not None and _lists_otherwise(inserts, table, columns):
            yield PublicationChange(inserts, [table], inserts, [table])
        if in_main and _lists_otherwise(main, table, columns):
            yield PublicationChange(main, [table], main, [table])


def _lists_otherwise(
    made: Publication, table: TableFacts, columns: frozenset[str]
) -> bool:
    return made.names(table) and made.list_of(table) != columns
