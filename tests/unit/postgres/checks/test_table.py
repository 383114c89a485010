"""Tables that do not come, as far as the catalog's facts tell."""

from dataclasses import replace

from walstream.postgres.catalog import TableFacts
from walstream.postgres.checks.table import (
    failing_updates,
    of_failing_updates,
    of_patterns,
    of_unlogged,
)
from walstream.postgres.publication import Publication

KEYED = TableFacts(
    schema="public",
    name="t",
    kind="r",
    persistence="p",
    replica_identity="d",
    primary_key=("id",),
    identity=("id",),
    columns=("id", "v"),
    not_null=frozenset({"id"}),
    root=None,
    leaves_full=True,
    leaves_identified=True,
)
KEYLESS = replace(KEYED, name="k", primary_key=(), identity=())
EVERY = Publication(
    name="every",
    oid=1,
    all_tables=True,
    operations=frozenset({"insert", "update"}),
    via_root=False,
    tables={},
    schemas=frozenset(),
)


def by_name(*tables: TableFacts) -> dict[str, TableFacts]:
    return {table.full_name: table for table in tables}


def test_pattern_that_matches_is_not_named() -> None:
    assert not list(of_patterns("app", ["public.?", "*.t"], by_name(KEYED)))


def test_nearest_name_is_said_whatever_its_case() -> None:
    (finding,) = of_patterns("app", ["Public.T"], by_name(KEYED, KEYLESS))
    assert "'public.t'" in finding.what
    (finding,) = of_patterns("app", ["nothing.like_it"], by_name(KEYED))
    assert "meant" not in finding.what
    assert "[sources.app]" in finding.repair.then


def test_updates_fail_only_where_they_are_published() -> None:
    facts = by_name(KEYED, KEYLESS)
    assert failing_updates([EVERY], facts).keys() == {"public.k"}
    inserts = replace(EVERY, operations=frozenset({"insert", "truncate"}))
    assert not failing_updates([inserts], facts)
    named = replace(EVERY, all_tables=False, tables={5: "public.t"})
    assert not failing_updates([named], facts)
    assert not list(of_failing_updates([named], facts))


def test_unlogged_table_is_not_published_and_so_not_failing() -> None:
    unlogged = replace(KEYLESS, persistence="u")
    assert not failing_updates([EVERY], by_name(unlogged))
    (finding,) = of_unlogged(by_name(unlogged), by_name(unlogged))
    assert finding.repair.sql == 'ALTER TABLE "public"."k" SET LOGGED;'


def test_leaf_fails_by_the_publication_of_its_root() -> None:
    root = replace(KEYED, name="r", kind="p", leaves_identified=False)
    leaf = replace(KEYLESS, name="r1", root="public.r")
    named = replace(EVERY, all_tables=False, via_root=True, tables={5: "public.r"})
    assert failing_updates([named], by_name(root, leaf)).keys() == {"public.r1"}
