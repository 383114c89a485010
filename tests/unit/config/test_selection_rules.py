"""Keys that choose among tables, where they have no effect or no table."""

from typing import Any

import pytest

from walstream.config import PostgresSource
from walstream.config.selection_rules import check_selection


def said(**keys: Any) -> list[str]:
    source = PostgresSource(
        kind="postgres", dsn="host=/run/postgresql", sinks=["kafka"], **keys
    )
    problems = check_selection("app", source)
    return [f"{'.'.join(map(str, one.path[2:]))} {one.complaint}" for one in problems]


def test_keys_that_have_an_effect_are_left_alone() -> None:
    assert said() == []
    assert said(tables=[]) == []
    assert (
        said(
            exclude=["public.audit_*"],
            columns={"public.users": ["id"]},
            generated="stored",
            backfill_where={"public.users": "id > 5"},
        )
        == []
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("exclude", ["public.a"]),
        ("columns", {"public.t": ["id"]}),
        ("generated", "stored"),
    ],
)
def test_a_publication_as_it_is_is_left_as_it_is(key: str, value: object) -> None:
    (problem,) = said(tables=[], **{key: value})
    assert problem.startswith(f"{key} has no effect with tables = []")


def test_columns_are_of_a_table_that_is_published() -> None:
    assert said(columns={"other.t": ["id"]}) == [
        "columns.other.t is matched by no pattern of tables, so it is not published"
    ]
    assert said(columns={"public.t": ["id"]}, exclude=["*.t"]) == [
        "columns.public.t is matched by exclude, too"
    ]


def test_a_condition_needs_a_first_backfill() -> None:
    (problem,) = said(backfill="never", backfill_where={"public.t": "id > 5"})
    assert problem.startswith("backfill_where has no effect")
