"""Tables that do not come, as far as the catalog's facts tell."""

from dataclasses import replace

from tests.support.table_facts import table_facts
from walstream.postgres.catalog import TableFacts
from walstream.postgres.checks.tables import (
    failing_updates,
    of_failing_updates,
    of_leaves,
    of_partitions,
    of_patterns,
    of_unlogged,
)
from walstream.postgres.publication import Publication

KEYED = table_facts()
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


ROOT = replace(KEYED, name="r", kind="p")
LEAF = replace(
    KEYED, name="r1", root="public.r", replica_identity="i", identity=("code",)
)


def test_leaf_whose_identity_lacks_the_roots_key_is_named_with_its_alter() -> None:
    for root in (ROOT, replace(ROOT, replica_identity="f", identity=())):
        (finding,) = of_leaves(by_name(root), by_name(root, LEAF))
        assert "public.r1" in finding.what
        assert finding.repair.sql == 'ALTER TABLE "public"."r1" REPLICA IDENTITY FULL;'


def test_leaf_that_holds_the_roots_key_or_has_no_updates_is_not_named() -> None:
    whole = replace(LEAF, replica_identity="f", identity=())
    more = replace(LEAF, identity=("code", "id"))
    without = replace(LEAF, replica_identity="n", identity=())
    for leaf in (whole, more, without):
        assert not list(of_leaves(by_name(ROOT), by_name(ROOT, leaf)))
    keyless = replace(ROOT, replica_identity="f", identity=(), primary_key=())
    assert not list(of_leaves(by_name(keyless), by_name(keyless, LEAF)))


def test_what_partitions_do_beside_the_stream_is_said_of_roots() -> None:
    (finding,) = of_partitions(by_name(ROOT, KEYED))
    assert finding.subject == "table public.r"
    assert "walstream backfill public.r --replace" in finding.repair.then
    assert not list(of_partitions(by_name(KEYED)))
