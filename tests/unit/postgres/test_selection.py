"""What a source selects, and what PostgreSQL cannot publish of it."""

from dataclasses import replace

import pytest

from tests.support.table_facts import table_facts
from walstream.config import PostgresSource
from walstream.postgres.selection import (
    EVERYTHING,
    Selection,
    misfits,
    selection_of,
    unselectable,
)

TABLE = table_facts(columns=("id", "name", "email"))


def test_what_is_excluded_is_not_wanted_whatever_matches() -> None:
    wanted = Selection(["public.*"], ["*.audit_*", "other.*"])
    assert wanted.wants("public.t")
    assert not wanted.wants("public.audit_log")
    assert wanted.leaves_out("public.audit_log")
    assert not wanted.leaves_out("other.t")  # nobody wanted it
    assert EVERYTHING.wants("any.thing")


def test_it_is_what_the_source_says() -> None:
    source = PostgresSource(
        kind="postgres",
        dsn="host=/run/postgresql",
        sinks=["kafka"],
        tables=["a.*"],
        exclude=["a.b"],
        columns={"a.c": ["id"]},
        generated="stored",
    )
    assert selection_of(source) == Selection(
        ["a.*"], ["a.b"], {"a.c": ["id"]}, generated=True
    )


def test_a_column_list_has_the_order_of_the_table() -> None:
    wanted = Selection(["*.*"], columns={"public.t": ["name", "id"]})
    assert wanted.columns_of(TABLE) == ["id", "name"]
    assert wanted.columns_of(replace(TABLE, name="u")) == []


@pytest.mark.parametrize(
    ("table", "columns", "said"),
    [
        (TABLE, ["id"], ""),
        (TABLE, ["name"], "leaves out 'id' of its replica identity"),
        (TABLE, ["id", "nam"], "names 'nam', which it does not have"),
        (replace(TABLE, replica_identity="f"), ["id"], "REPLICA IDENTITY FULL"),
        (replace(TABLE, primary_key=(), identity=()), ["name"], ""),  # its inserts
    ],
)
def test_a_list_that_postgresql_does_not_take_is_told(
    table: object, columns: list[str], said: str
) -> None:
    assert isinstance(table, type(TABLE))
    wanted = Selection(["*.*"], columns={"public.t": columns})
    found = [str(one.args[0]) for one in misfits(wanted, {"public.t": table})]
    assert bool(found) is bool(said)
    assert all(said in one for one in found)
    out = Selection(["*.*"], ["public.t"], {"public.t": columns})
    assert not list(misfits(out, {"public.t": table}))


def test_a_list_has_to_fit_each_partition() -> None:
    wanted = Selection(["*.*"], columns={"public.t": ["id"]})
    leaf = replace(TABLE, name="leaf", root="public.t", identity=("name",))
    tables = {"public.t": replace(TABLE, kind="p"), "public.leaf": leaf}
    (found,) = misfits(wanted, tables)
    assert "leaves out 'name' of the replica identity of its partition" in str(found)
    tables["public.leaf"] = replace(leaf, root="public.other")
    assert not list(misfits(wanted, tables))


@pytest.mark.parametrize(
    ("exclude", "columns", "schemas", "all_tables", "refused"),
    [
        (["public.a*"], {}, ["public"], False, True),
        (["*.a*"], {}, ["public"], False, True),
        (["other.a*"], {}, ["public"], False, False),
        ([], {"public.t": ["id"]}, ["public"], False, True),
        ([], {"public.t": ["id"]}, ["other"], False, False),
        (["other.a*"], {}, [], True, True),
        ([], {}, ["public"], True, False),
        (["public.a*"], {}, [], False, False),
    ],
)
def test_what_is_published_whole_has_no_exceptions(
    exclude: list[str],
    columns: dict[str, list[str]],
    schemas: list[str],
    all_tables: bool,
    refused: bool,
) -> None:
    wanted = Selection(["*.*"], exclude, columns)
    problem = unselectable(wanted, "walstream", schemas, all_tables=all_tables)
    assert (problem is not None) is refused
