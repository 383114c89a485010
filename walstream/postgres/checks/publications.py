"""Findings about publications: what they leave out, and what they may not publish."""

from collections.abc import Iterator
from typing import Final

from walstream.errors import PermissionLacking, Repair
from walstream.finding import Finding, note, warning
from walstream.postgres import privileges, publication, quoting, replica_identity
from walstream.postgres.catalog import TableFacts
from walstream.postgres.checks.context import ServerContext, statements
from walstream.postgres.publication import Publication, PublicationPlan
from walstream.postgres.publication_steps import unwanted
from walstream.postgres.start_table import Step
from walstream.telemetry.human import few, tables

_READ_AGAIN: Final = "rows sent before lack them: walstream backfill TABLE"
_EXPECTED: Final = (publication.ALL_OPERATIONS, publication.INSERT_OPERATIONS)

_FILTERS: Final = """
SELECT p.pubname::text, n.nspname || '.' || c.relname,
  r.prqual IS NOT NULL, r.prattrs IS NOT NULL
FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE p.pubname = ANY (%s) AND (r.prqual IS NOT NULL OR r.prattrs IS NOT NULL)
ORDER BY 1, 2
"""


def look(seen: ServerContext) -> Iterator[Finding]:
    """Look at our publications as they are, and as `tables` wants them."""
    for name, expected in zip(seen.capture.names, _EXPECTED, strict=True):
        if made := seen.found.get(name):
            yield from _operations(seen, made, expected)
            yield from _roots(seen, made)
    yield from _generated(seen)
    yield from _selection(seen)
    yield from _nothing(seen)
    yield from _filters(seen)
    if seen.source.tables and seen.step is not None:
        yield from _rights(seen)


def _nothing(seen: ServerContext) -> Iterator[Finding]:
    made = seen.found.get(seen.capture.name)
    if seen.source.tables or made is None or not made.empty:
        return
    yield warning(
        "publication-empty",
        f"publication {made.name}",
        publication.EMPTY,
        "add the tables that you want, or name them in `tables`",
        Repair(sql=publication.filling(made.name, seen.facts)),
    )


def _operations(
    seen: ServerContext, made: Publication, expected: str
) -> Iterator[Finding]:
    missing = [name for name in expected.split(", ") if name not in made.operations]
    if not missing:
        return
    # or the application's updates would fail from then on
    culprits = {
        one.full_name: one
        for table in seen.facts.values()
        if made.holds(table) and table.persistence == "p"
        for one in replica_identity.culprits(table, seen.facts).values()
    }
    alter = (
        f"ALTER PUBLICATION {quoting.name(made.name)}"
        f" SET (publish = {quoting.text(expected)});"
    )
    cures = sorted(replica_identity.cure(one) for one in culprits.values())
    yield warning(
        "publication-operations",
        f"publication {made.name}",
        f"does not publish {', '.join(missing)}",
        "these changes are not in the stream and never reach Kafka",
        Repair(sql="\n".join([*cures, alter])),
    )


def _roots(seen: ServerContext, made: Publication) -> Iterator[Finding]:
    roots = [
        table.full_name
        for table in seen.captured.values()
        if table.kind == "p" and made.holds(table)
    ]
    if made.via_root or not roots or seen.wanted.publications is not None:
        return
    yield note(
        "publication-root",
        f"publication {made.name}",
        f"publishes the partitions of {few(roots)}, not the tables themselves",
        "each partition gets its own topic; after the first start only a reset can "
        "change this",
        Repair(
            sql=f"ALTER PUBLICATION {quoting.name(made.name)}"
            " SET (publish_via_partition_root = true);"
        ),
    )


def _generated(seen: ServerContext) -> Iterator[Finding]:
    without = [
        made
        for made in seen.found.values()
        if made.generated == publication.WITHOUT_GENERATED
    ]
    repair = Repair(sql=publication.with_generated(without), then=_READ_AGAIN)
    what = "does not publish stored generated columns"
    if without and len(without) < len(seen.found):
        what += ", and the other one does"
        why = "PostgreSQL decodes no change of a table with such that is in both"
    elif without and seen.capture.wanted.generated:
        what += ", as `generated` wants"
        why = "walstream sets this only where it creates the publication"
    else:
        return
    subject = f"publication {', '.join(made.name for made in without)}"
    yield warning("publication-generated", subject, what, why, repair)


def _selection(seen: ServerContext) -> Iterator[Finding]:
    """Name what `exclude` leaves out, and what it or `columns` cannot do."""
    wanted = seen.capture.wanted
    if seen.step is not Step.CREATE:  # else said as what keeps it from that
        for problem in seen.capture.unselectable(seen.connection, seen.facts):
            subject = f"publication {seen.capture.name}"
            yield Finding.of(problem, "publication-selection", subject)
    excluded = sorted(name for name in seen.facts if wanted.leaves_out(name))
    if excluded:
        yield note(
            "excluded",
            tables(excluded),
            f"excluded: {', '.join(excluded)}",
            "`exclude` keeps them out of `tables`: no row of them is sent",
        )
    for made in seen.found.values():
        there = [name for name in made.tables.values() if wanted.excludes(name)]
        if there:
            yield note(
                "excluded-published",
                tables(there),
                f"publication {made.name!r} has {few(there)}, which `exclude` matches",
                "run removes them from it at its start; changes from before that are "
                "still sent",
            )
    for name, table in publication.swallowed(wanted, seen.facts).items():
        yield warning(
            "excluded-partition",
            f"table {name}",
            f"its rows go out as those of {table.root}, although `exclude` matches it",
            "a partition goes with its root: exclude the root, or detach the partition",
        )
    if wanted.patterns and (more := unwanted(wanted, seen.found.values(), seen.facts)):
        yield warning(
            "unwanted-published",
            tables(more),
            f"sent, although `tables` does not match: {few(more)}",
            f"it is in publication {seen.capture.name!r}: take it out, or set another "
            "`publication` and reset the source: walstream creates it",
        )


def _filters(seen: ServerContext) -> Iterator[Finding]:
    rows = seen.connection.execute(_FILTERS, (list(seen.found),)).fetchall()
    listed = seen.capture.wanted.columns
    for name, table, has_filter, has_columns in rows:
        facts = seen.facts.get(table)
        has_list = has_columns and table not in listed
        what = [
            text
            for text, there in (("a row filter", has_filter), ("columns", has_list))
            if there
        ]
        if not what:
            continue
        whole = [facts] if facts else []
        again = [
            "BEGIN;",
            publication.removal(name, whole),
            publication.addition(name, whole, seen.capture.wanted),
            "COMMIT;",
        ]
        yield warning(
            "publication-filter",
            f"table {table}",
            f"publication {name!r} gives it {' and '.join(what)}",
            "what is left out never reaches Kafka, and readers there cannot see that "
            "it is missing",
            Repair(sql="\n".join(again) if whole else ""),
        )
    yield from _lists(seen)


def _lists(seen: ServerContext) -> Iterator[Finding]:
    """Name tables that have other columns in a publication than in `columns`."""
    wanted = seen.capture.wanted
    plan = publication.plan(wanted, seen.facts, seen.found.values())
    for table in plan:
        columns = wanted.columns_of(table)
        for made in seen.found.values():
            there = made.list_of(table)
            if not columns or not made.names(table) or there == frozenset(columns):
                continue
            has = f"the columns {', '.join(sorted(there))}" if there else "all columns"
            rule = seen.source.on_publication_change
            yield warning(
                "publication-columns",
                f"table {table.full_name}",
                f"publication {made.name!r} has {has} of it, and `columns` wants "
                f"{', '.join(columns)}",
                "run changes that, and reads the table again while it streams"
                if rule == "reread"
                else "rows sent before have other columns: run stops until the table "
                "is read again, and then changes that",
                Repair(command=seen.capture.mending.command([table.full_name])),
            )


def _rights(seen: ServerContext) -> Iterator[Finding]:
    """Name tables that the role may not bring in: `run` goes on without them."""
    may = privileges.look(seen.connection)
    plan = publication.plan(seen.capture.wanted, seen.facts, seen.found.values())
    main, inserts = (seen.found.get(name) for name in seen.capture.names)
    if main is None and privileges.missing_to_create(may, [], plan.identified):
        return  # a stop, and said already with what cures both
    if main is not None and not main.all_tables:
        lacks = privileges.missing_to_extend(may, main, plan.identified)
        if lacks is not None:
            missing = [one for one in plan.identified if not main.holds(one)]
            yield _not_added(lacks, missing)
    yield from _insert_rights(seen, may, plan, inserts)


def _insert_rights(
    seen: ServerContext,
    may: privileges.Rights,
    plan: PublicationPlan,
    inserts: Publication | None,
) -> Iterator[Finding]:
    lacks, missing = None, plan.insert_only
    name = seen.capture.names[1]
    if inserts is not None:
        lacks = privileges.missing_to_extend(may, inserts, plan.insert_only)
        missing = [one for one in plan.insert_only if not inserts.holds(one)]
    elif seen.step is Step.CREATE and plan.insert_only:
        create = seen.capture.creation(name, plan, seen.found)
        lacks = privileges.missing_to_create(may, [create], plan.insert_only)
    if lacks is not None:
        yield _not_added(lacks, missing)


def _not_added(error: PermissionLacking, wanted: list[TableFacts]) -> Finding:
    return warning(
        "publication-right",
        tables([table.full_name for table in wanted]),
        str(error.args[0]),
        "run continues without the tables that it may not publish",
        statements(error.repair.sql.splitlines()),
    )
