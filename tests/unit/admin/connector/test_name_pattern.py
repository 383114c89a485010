"""Expressions become patterns where these match the same names, and only there."""

import pytest

from walstream.admin.connector.name_pattern import (
    Inexact,
    column_of,
    is_literal,
    patterns,
    split,
)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        (r"public\.orders", ["public.orders"]),
        ("public.orders", ["public.orders"]),
        (r"public\..*", ["public.*"]),
        ("public.*", ["public*"]),
        (r"[^.]+\.audit_.+", ["*.audit_?*"]),
        (r"(a|b)\.(?:c|d)", ["a.c", "a.d", "b.c", "b.d"]),
        (r"^public\.orders?$", ["public.order", "public.orders"]),
        (r"(?i)app\.t[12]", ["app.t1", "app.t2"]),
        (r".*\.t", ["*.t"]),
        (r"a\.b\$c", ["a.b$c"]),
    ],
)
def test_patterns_of_tables(expression: str, found: list[str]) -> None:
    assert patterns(expression, dots=1) == found


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (r"public\.\w+", r"no \\w"),
        (r"public\.Orders", "capital"),
        (r"public\.(?!x).*", "look-around"),
        (r"public\.t[0-9]", "range"),
        (r"public\.(ab)*", "repeats"),
        ("orders", "no name of 1 dots"),
        (r"a\.b\.c", "no name of 1 dots"),
        (r"public[^.]+orders", "where its dot stands"),
        (r"public\.(a", r"\( too many"),
        (r"public\.a)", r"\) too many"),
        (r"(a|b|c|d|e)(a|b|c|d|e)(a|b|c|d|e)\.t", "more than 64"),
        (r"public\.a\*", "a name has a"),
        (r"public\..++", "possessive"),
        (r"public\.a.{1,2}", "no {"),
        (r"public\.[^a]*", "no \\["),
        (r"a\.b\.[^.]", "alone|dots"),
    ],
)
def test_what_no_pattern_says_is_told(expression: str, why: str) -> None:
    with pytest.raises(Inexact, match=why):
        patterns(expression, dots=1)


def test_a_list_is_split_as_debezium_splits_it() -> None:
    assert split(r"a\.b, c{1\,2},,d\\,e") == [r"a\.b", "c{1,2}", r"d\\", "e"]
    assert split(" ") == []


def test_columns_end_in_a_name() -> None:
    (found,) = patterns("public.orders.note", dots=2)
    assert column_of(found) == ("public.orders", "note")
    (found,) = patterns(r".*\.secret", dots=2)
    assert column_of(found) == ("*", "secret")
    for expression in (".*.secret", r"public\.orders\..*"):
        with pytest.raises(Inexact, match="column's name"):
            column_of(patterns(expression, dots=2)[0])


def test_a_name_has_nothing_wild() -> None:
    assert is_literal("public.orders")
    assert not is_literal("public.?")
