"""Tables that do not come, or not whole: patterns, identities, unlogged ones."""

from collections.abc import Iterable, Iterator, Mapping

from walstream.errors import Repair
from walstream.finding import Finding, note, warning
from walstream.postgres import publication, replica_identity
from walstream.postgres.catalog import TableFacts
from walstream.postgres.checks.context import ServerContext, statements
from walstream.postgres.publication import Publication
from walstream.postgres.start_table import Step
from walstream.postgres.table_pattern import WHY, unmatched
from walstream.telemetry.human import because, few, tables, which


def look(seen: ServerContext) -> Iterator[Finding]:
    """Look at all tables that match or are published."""
    patterns = (*seen.source.tables, *seen.source.exclude)
    yield from of_patterns(seen.wanted.name, patterns, seen.facts)
    everywhere = publication.find(seen.connection)
    yield from of_failing_updates(everywhere.values(), seen.facts)
    failing = failing_updates(everywhere.values(), seen.facts)
    yield from of_identities(seen, failing)
    yield from of_unlogged(wanted_tables(seen), seen.facts)
    yield from of_leaves(seen.captured, seen.facts)
    yield from of_roots(seen.captured, seen.facts)
    yield from of_partitions(seen.captured)


def wanted_tables(seen: ServerContext) -> dict[str, TableFacts]:
    """Return what matches or is published; a partition goes with its root."""
    matching = {
        name: table
        for name, table in seen.facts.items()
        if seen.capture.wanted.wants(name)
    }
    wanted = {**matching, **seen.captured}
    return {name: one for name, one in wanted.items() if one.root not in wanted}


def of_patterns(
    source: str, patterns: Iterable[str], facts: Mapping[str, TableFacts]
) -> Iterator[Finding]:
    """Name patterns that match nothing."""
    for pattern, what in unmatched(patterns, facts).items():
        yield warning(
            "pattern",
            f"pattern {pattern}",
            what,
            WHY,
            Repair(then=f"correct `tables` or `exclude` in [sources.{source}]"),
        )


def failing_updates(
    publications: Iterable[Publication], facts: Mapping[str, TableFacts]
) -> dict[str, tuple[TableFacts, str]]:
    """Return the tables whose rows cannot be updated now, and the publication."""
    found = {}
    for made in publications:
        if made.operations.isdisjoint({"update", "delete"}):
            continue
        for name, table in facts.items():
            lacks = not (table.full or table.identity) or _hides_computed(made, table)
            if (
                table.kind == "r"
                and lacks
                and table.persistence == "p"
                and _reaches(made, table, facts)
            ):
                found[name] = (table, made.name)
    return found


def _hides_computed(made: Publication, table: TableFacts) -> bool:
    """Return whether generated columns of the identity are not published (18)."""
    if table.computed == "s" and not table.full and made.lists:
        return False  # a list that lacks them is told elsewhere
    stored = made.generated == publication.STORED
    return bool(table.computed) and not (stored and table.computed == "s")


def _reaches(
    made: Publication, table: TableFacts, facts: Mapping[str, TableFacts]
) -> bool:
    """Return whether a publication reaches a table, by itself or by its root."""
    root = facts.get(table.root or "")
    return made.holds(table) or (root is not None and made.holds(root))


def of_failing_updates(
    publications: Iterable[Publication], facts: Mapping[str, TableFacts]
) -> Iterator[Finding]:
    """Yield it loudly: it is the application that fails."""
    failing = failing_updates(publications, facts)
    if failing:
        reasons = {
            name: replica_identity.reason(one) for name, (one, _) in failing.items()
        }
        guilty = {made for _, made in failing.values()}
        yield warning(
            "updates-fail",
            tables(failing),
            f"the application's UPDATE and DELETE FAIL NOW: {because(reasons)}",
            f"publication {few(guilty)} publishes updates, and without a replica"
            " identity PostgreSQL refuses them",
            statements(replica_identity.cure(table) for table, _ in failing.values()),
        )


def of_identities(
    seen: ServerContext, failing: Mapping[str, object]
) -> Iterator[Finding]:
    """Name tables of which only inserts come, or nothing."""
    selection = seen.capture.wanted
    generated = publication.stored(selection, seen.found.values())
    lacking = {
        name: table
        for name, table in wanted_tables(seen).items()
        if table.persistence == "p"
        and name not in failing
        and (not table.identified or selection.unsent(table, generated=generated))
    }
    if not lacking:
        return
    culprits = {
        name: one
        for table in lacking.values()
        for name, one in replica_identity.culprits(table, seen.facts).items()
        if name not in failing
    }
    reasons = {name: replica_identity.reason(one) for name, one in culprits.items()}
    there = seen.capture.names[1] in seen.found or not seen.source.tables
    captured = there or seen.step in {Step.CREATE, None}
    what = "only inserts are" if captured else "nothing is"
    yield warning(
        "identity",
        tables(lacking),
        f"{what} captured: {because(reasons)}",
        "without a replica identity PostgreSQL cannot name the row of an update or a "
        "delete",
        statements(replica_identity.cure(one) for one in culprits.values()),
    )


def of_unlogged(
    wanted: Mapping[str, TableFacts], facts: Mapping[str, TableFacts]
) -> Iterator[Finding]:
    """Name tables, and leaves of partition roots, that write no WAL."""
    unlogged = {
        one.full_name: one
        for table in wanted.values()
        for one in (table, *replica_identity.leaves(table, facts))
        if one.persistence == "u"
    }
    if unlogged:
        yield warning(
            "unlogged",
            tables(unlogged),
            f"cannot be captured{which(unlogged)}",
            "PostgreSQL writes no WAL for an unlogged table; SET LOGGED rewrites it,"
            " under a lock",
            statements(map(publication.set_logged, unlogged.values())),
        )


def of_leaves(
    captured: Mapping[str, TableFacts], facts: Mapping[str, TableFacts]
) -> Iterator[Finding]:
    """Yield roots with unidentified rows: a leaf's old rows lack the key."""
    found = {
        name: lacking
        for name, table in captured.items()
        if (lacking := replica_identity.partial(table, facts))
    }
    if found:
        leaves = {
            name: one for lacking in found.values() for name, one in lacking.items()
        }
        yield warning(
            "leaf-identity",
            tables(found),
            "the first UPDATE or DELETE stops the stream: the replica identity of"
            f" {few(leaves)} does not hold its root's key",
            "an old row is logged as its partition's identity says, and ALTER TABLE"
            " ... REPLICA IDENTITY does not reach from a root to its partitions",
            statements(
                replica_identity.identify(one, "FULL") for one in leaves.values()
            ),
        )


def of_partitions(captured: Mapping[str, TableFacts]) -> Iterator[Finding]:
    """Yield of roots what happens to their partitions without a row in the WAL."""
    roots = {name: table for name, table in captured.items() if table.kind == "p"}
    if roots:
        yield note(
            "partitions",
            tables(roots),
            "TRUNCATE, DROP, DETACH and ATTACH of a partition are not in the stream",
            "PostgreSQL sends none of them with publish_via_partition_root; after "
            "one, read the table again",
            Repair(then=f"after one: walstream backfill {few(roots)} --replace"),
        )


def of_roots(
    captured: Mapping[str, TableFacts], facts: Mapping[str, TableFacts]
) -> Iterator[Finding]:
    """Name roots under FULL whose leaves are not."""
    partial = {
        name: [one for one in replica_identity.leaves(table, facts) if not one.full]
        for name, table in captured.items()
        if table.kind == "p" and table.full and not table.leaves_full
    }
    if partial:
        leaves = [one for lacking in partial.values() for one in lacking]
        yield note(
            "partition-identity",
            tables(partial),
            f"REPLICA IDENTITY FULL, but not of {len(leaves)} partitions"
            f"{which(partial)}",
            "an old row has what its partition's identity holds: there, the key",
            statements(replica_identity.identify(one, "FULL") for one in leaves),
        )
