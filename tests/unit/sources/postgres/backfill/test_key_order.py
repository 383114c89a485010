"""The SQL that reads behind a key: operators are named with their schemas."""

from typing import Any, cast

import pytest

from walstream.errors import ConfigError
from walstream.op import Table
from walstream.sources.postgres.backfill.chunk import ChunkRelation
from walstream.sources.postgres.backfill.key_order import (
    Keyed,
    Operators,
    find,
    statement,
)
from walstream.sources.postgres.backfill.table import ReadableRelation

TABLE = Table("public", "t", ("a", "b", "v"), (0, 1))
PART = ReadableRelation(
    ChunkRelation("public", "t", 1, TABLE, "", alone=True), True, 1, 1
)
OURS = Operators(*(f"OPERATOR(pg_catalog.{sign})" for sign in ("<", "=", ">=", ">")))
THEIRS = Operators("", *(f"OPERATOR(apart.{sign})" for sign in ("=", ">=", ">")))


def written(
    *operators: Operators,
    after: tuple[str, ...] | None,
    composite: tuple[str, str] | None = None,
) -> str:
    where = (None, ("s", "c"))
    keyed = Keyed("public", "t", ("a", "b"), where, operators, (), (None, composite), 1)
    found = statement(keyed, PART, after, 9).as_string()
    return found.replace("OPERATOR(pg_catalog.", "C(").replace("OPERATOR(apart.", "A(")


def test_a_key_of_one_kind_is_compared_as_a_row() -> None:
    assert written(OURS, OURS, after=("1", "x")) == (
        'COPY (SELECT "a", "b", "v" FROM ONLY "public"."t" WHERE'
        ' ("a", "b" COLLATE "s"."c") C(>) (\'1\', \'x\')'
        ' ORDER BY "a" USING C(<), "b" COLLATE "s"."c" USING C(<) LIMIT 9) TO STDOUT'
    )


def test_a_key_of_several_kinds_is_compared_column_by_column() -> None:
    found = written(OURS, THEIRS, after=("1", "x"))
    assert (
        """ WHERE "a" C(>=) '1' AND ("a" C(>) '1' OR "a" C(=) '1' AND"""
        """ ("b" COLLATE "s"."c" A(>) 'x' OR"""
        """ "b" COLLATE "s"."c" A(=) 'x' AND false))"""
        """ ORDER BY "a" USING C(<), "b" COLLATE "s"."c" LIMIT""" in found
    )


def test_a_value_of_a_composite_type_says_of_which() -> None:
    found = written(OURS, OURS, after=("1", "(2,3)"), composite=("s", "pair"))
    assert " C(>) ('1', '(2,3)'::\"s\".\"pair\")" in found


def test_the_first_rows_are_behind_nothing() -> None:
    assert "WHERE" not in written(OURS, OURS, after=None)


class Answer:
    """A connection whose catalog has one key, of a type without an order."""

    def execute(self, *_: object) -> "Answer":
        return self

    def fetchone(self) -> tuple[Any, ...]:
        return (
            "public",
            "t",
            1,
            ["a", "b"],
            [None] * 2,
            [["", "", "", ""], None],
            [],
            [],
            [None] * 2,
        )


def test_a_key_of_a_type_that_no_order_is_known_of_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"the type of b, of the key .* no order"):
        find(cast("Any", Answer()), "public.t")
