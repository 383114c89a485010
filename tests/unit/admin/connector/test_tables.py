"""What a connector leaves out is not sent, or nothing is until a person decides."""

import pytest

from tests.support.connector import draft, fates, sql, undecided
from walstream.admin.connector.draft import Draft, Fate

OWN = "debezium_walstream"


def publication(made: Draft) -> str:
    return str(made.tables["source"]["publication"])


def test_a_publication_is_read_as_it_is() -> None:
    made = draft(slot_name="dbz", publication_name="p")
    source = made.tables["source"]
    assert (source["slot"], source["publication"], source["tables"]) == ("dbz", "p", [])
    assert made.tables["sink"]["topic"] == "app.{schema}.{table}"
    made = draft()
    assert made.tables["source"]["slot"] == "debezium"
    assert publication(made) == "dbz_publication"
    assert not undecided(made)


def test_tables_that_are_named_alone_have_topics() -> None:
    made = draft(table_include_list=r"public\.orders,public.items")
    assert made.tables["sink"]["topic"] == ""
    assert made.topics == {
        "public.orders": {"name": "app.public.orders"},
        "public.items": {"name": "app.public.items"},
    }
    assert publication(made) == "dbz_publication"
    assert not undecided(made)
    made = draft(table_include_list="a.t,b.t", schema_include_list="b")
    assert list(made.topics) == ["b.t"]


def test_what_is_excluded_passes_no_handler() -> None:
    made = draft(table_exclude_list=r".*\.audit_.*", schema_exclude_list="hidden")
    assert made.handlers == [
        {"kind": "filter", "tables": ["hidden.*"], "operations": []},
        {"kind": "filter", "tables": ["*.audit_*"], "operations": []},
    ]
    assert not undecided(made)


@pytest.mark.parametrize(
    ("lists", "statement"),
    [
        ({"schema_include_list": "app"}, f'"{OWN}" FOR TABLES IN SCHEMA app'),
        ({"table_include_list": r"App\..*"}, f'"{OWN}" FOR TABLE …'),
        ({"table_include_list": r"app\..*"}, f'"{OWN}" FOR TABLES IN SCHEMA app'),
        ({"table_include_list": r"a\.b.*"}, f'"{OWN}" FOR TABLE …'),
        ({"table_exclude_list": r"app\.\w+"}, f'"{OWN}" FOR TABLE …'),
    ],
)
def test_where_neither_says_the_same_a_publication_has_to_be_made(
    lists: dict[str, str], statement: str
) -> None:
    made = draft(**lists)
    assert publication(made) == OWN
    (key,) = lists
    assert sql(made, key.replace("_", ".")) == f"CREATE PUBLICATION {statement};"


def test_partitions_are_published_as_before() -> None:
    made = draft(schema_include_list="app", publish_via_partition_root="true")
    made_by = sql(made, "schema.include.list")
    assert made_by.endswith("SCHEMA app WITH (publish_via_partition_root = true);")


def test_a_publication_that_debezium_made_by_its_lists_holds_no_more() -> None:
    made = draft(publication_autocreate_mode="filtered", table_include_list=r"app\.\w+")
    assert publication(made) == "dbz_publication"
    assert made.tables["sink"]["topic"] == "app.{schema}.{table}"
    assert not undecided(made)


def test_of_two_lists_what_is_included_counts() -> None:
    made = draft(table_include_list="a.b", table_exclude_list="a.c")
    assert "alone counts" in fates(made, "table.exclude.list")[Fate.NO_EFFECT]
    assert not made.handlers


def test_a_slot_of_decoderbufs_stays_debeziums() -> None:
    made = draft(plugin_name="decoderbufs", slot_name="dbz", table_include_list="a.b")
    source = made.tables["source"]
    assert source["slot"] == source["publication"] == "dbz_walstream"
    assert source["tables"] == ["a.b"]
    assert undecided(made) == ["plugin.name"]
    made = draft(plugin_name="", table_include_list=r"a\.\w", slot_name="x" * 63)
    assert made.tables["source"]["tables"] == []
    assert len(publication(made)) == 50
