"""Which tables belong where, and what a changed publication means."""

from dataclasses import replace

import pytest

from tests.support.table_facts import table_facts
from walstream.postgres.catalog import TableFacts
from walstream.postgres.publication import (
    INSERT_OPERATIONS,
    PublicationPlan,
    addition,
    creation,
    insert_only,
    plan,
    removal,
)
from walstream.postgres.selection import Selection

TABLE = table_facts()
KEYLESS = replace(TABLE, name="log", primary_key=(), identity=())


def planned(patterns: list[str], *tables: TableFacts) -> PublicationPlan:
    return plan(Selection(patterns), {table.full_name: table for table in tables})


def names(tables: list[TableFacts]) -> list[str]:
    return [table.full_name for table in tables]


def test_tables_that_match_are_taken_in_order() -> None:
    other = replace(TABLE, schema="Public")
    found = planned(["public.*"], replace(TABLE, name="z"), TABLE, other)
    assert names(found.identified) == ["public.t", "public.z"]


def test_table_that_two_patterns_match_is_taken_once() -> None:
    assert names(planned(["*.t", "public.*"], TABLE).identified) == ["public.t"]


@pytest.mark.parametrize(
    "table",
    [
        KEYLESS,
        replace(KEYLESS, replica_identity="n"),
        replace(TABLE, replica_identity="n", identity=()),
        replace(TABLE, kind="p", leaves_identified=False),
        replace(TABLE, kind="p", identity=()),
    ],
)
def test_table_without_replica_identity_publishes_inserts_only(
    table: TableFacts,
) -> None:
    found = planned(["*"], table)
    assert found.identified == []
    assert found.insert_only == [table]


def test_full_identifies_a_table_without_key() -> None:
    full = replace(KEYLESS, replica_identity="f")
    assert planned(["*"], full).identified == [full]


def test_unlogged_table_is_refused_by_name() -> None:
    found = planned(["*"], replace(TABLE, persistence="u"), KEYLESS)
    assert list(found.refused) == ["public.t"]
    assert found.insert_only == [KEYLESS]


def test_partition_goes_with_its_root() -> None:
    root = replace(TABLE, name="root", kind="p")
    branch = replace(TABLE, name="branch", kind="p", root="public.root")
    leaf = replace(TABLE, name="leaf", root="public.root")
    assert names(planned(["*"], root, branch, leaf).identified) == ["public.root"]


def test_partition_whose_root_does_not_match_goes_alone() -> None:
    root = replace(TABLE, name="root", kind="p")
    leaf = replace(TABLE, name="leaf", root="public.root")
    assert names(planned(["*.leaf"], root, leaf).identified) == ["public.leaf"]


def test_publication_of_keyless_tables_has_a_name_of_its_own() -> None:
    assert insert_only("walstream") == "walstream_insert"


HOSTILE = replace(TABLE, schema="Sales %s", name='or"der')


WITH = "WITH (publish = 'insert, truncate', publish_via_partition_root = true);"
BOTH = 'ONLY "public"."t", ONLY "Sales %s"."or""der"'


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            creation('wal"stream', [TABLE, HOSTILE], INSERT_OPERATIONS),
            f'CREATE PUBLICATION "wal""stream" FOR TABLE {BOTH} {WITH}',
        ),
        (
            creation("Empty", [], INSERT_OPERATIONS),
            f'CREATE PUBLICATION "Empty" {WITH}',
        ),
        (
            addition("Wal-Stream", [HOSTILE]),
            'ALTER PUBLICATION "Wal-Stream" ADD TABLE ONLY "Sales %s"."or""der";',
        ),
        (
            removal("Wal-Stream", [HOSTILE]),
            'ALTER PUBLICATION "Wal-Stream" DROP TABLE ONLY "Sales %s"."or""der";',
        ),
    ],
)
def test_statements_quote_every_name(written: str, expected: str) -> None:
    assert written == expected
