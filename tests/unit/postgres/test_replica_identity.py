"""Why a table cannot say which row it was, and what cures it."""

from dataclasses import replace

import pytest

from tests.support.table_facts import table_facts
from walstream.postgres.catalog import TableFacts
from walstream.postgres.replica_identity import culprits, cure, leaves, reason

KEYED = table_facts()
KEYLESS = replace(KEYED, primary_key=(), identity=())
NOTHING = replace(KEYED, replica_identity="n", identity=())
BY_INDEX = replace(KEYLESS, replica_identity="i")
DEFERRABLE = replace(KEYED, identity=(), key_immediate=False)


@pytest.mark.parametrize(
    ("table", "why", "how"),
    [
        (KEYLESS, "no primary key", "FULL"),
        (NOTHING, "NOTHING", "DEFAULT"),
        (replace(NOTHING, primary_key=()), "NOTHING", "FULL"),
        (replace(NOTHING, key_immediate=False), "NOTHING", "FULL"),
        (BY_INDEX, "is gone", "FULL"),
        (replace(BY_INDEX, primary_key=("id",)), "is gone", "DEFAULT"),
        (DEFERRABLE, "deferrable", "FULL"),
    ],
)
def test_cure_is_the_primary_key_where_it_may_be(
    table: TableFacts, why: str, how: str
) -> None:
    assert why in reason(table)
    assert cure(table) == f'ALTER TABLE "public"."t" REPLICA IDENTITY {how};'
    assert culprits(table, {}) == {"public.t": table}


@pytest.mark.parametrize("table", [KEYED, replace(KEYLESS, replica_identity="f")])
def test_table_with_an_identity_is_no_culprit(table: TableFacts) -> None:
    assert not culprits(table, {})


def test_leaves_are_culprits_of_their_root() -> None:
    root = replace(KEYED, name="r", kind="p", leaves_identified=False)
    branch = replace(KEYED, name="b", kind="p", root="public.r", identity=())
    good = replace(KEYED, name="r1", root="public.r")
    bad = replace(NOTHING, name="r2", root="public.r")
    other = replace(NOTHING, name="x", root="public.other")
    facts = {one.full_name: one for one in (root, branch, good, bad, other)}
    assert leaves(root, facts) == [good, bad]
    assert culprits(root, facts) == {"public.r2": bad}
    assert not leaves(good, facts)
