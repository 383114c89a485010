"""A condition is one expression, whatever is put around it."""

import pytest

from walstream.config.condition import (
    LONGEST,
    both,
    check_plain,
    condition,
    either,
)


@pytest.mark.parametrize(
    "text",
    [
        "id > 5",
        "name = 'it''s (;' AND \"a;b\" IS NULL",
        "id IN (SELECT id FROM public.other WHERE a[1] = 2)",
        "name = ')' OR name = '--'",
    ],
)
def test_what_may_be_one_expression_is_left_to_the_server(text: str) -> None:
    assert condition(f"  {text}\n") == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("true) OR (true", "')' without its beginning"),
        ("(true", "no ')'"),
        ("(a[1)]", "')' without its beginning"),
        ("true; DROP TABLE t", "a semicolon"),
        ("true -- rest", "a comment"),
        ("true /* rest", "a comment"),
        ("name = 'open", "a text without its end"),
        ('"open = 1', "a name without its end"),
        ("name = $$a$$", "a dollar sign"),
        (r"name = E'\') OR (true'", "a backslash"),
        ("x" * (LONGEST + 1), "is longer"),
    ],
)
def test_what_could_end_the_parentheses_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - its text is compared
        condition(text)
    assert said in str(refused.value)


def test_conditions_of_two_requests_are_joined_and_a_whole_table_holds_both() -> None:
    assert either(None, "a") == "a"
    assert either(None, "") == ""
    assert either("a", "a") == "a"
    assert either("a", "b OR c") == "(a) OR (b OR c)"
    assert either("", "a") == either("a", "") == ""
    assert either("a" * 5 * LONGEST, "b") == ""


def test_a_row_filter_holds_for_a_part_too() -> None:
    assert both("a OR b", "c OR d") == "(a OR b) AND (c OR d)"
    assert both("a", "") == "a"
    assert both("", "c") == "c"


@pytest.mark.parametrize(
    "text",
    [
        "id > 1.5 AND NOT (name LIKE 'pg_drop(%' OR \"a(b.c\" IS NULL)",
        "id IN (1, 2) AND tags && '{a,b}'::text[] AND (v)::numeric(5, 2) > .5",
        "Lower(name) = 'x' AND created > now() - interval '1 day'",
        "a IS DISTINCT FROM (b) AND k = ANY ('{1}'::int[]) AND - (c) < 0",
        "name = 'select' OR name = 'it''s (SELECT' OR \"table\" = 1",
    ],
)
def test_what_compares_columns_is_plain(text: str) -> None:
    check_plain(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("true) OR (true", "is not one expression"),
        ("pg_drop_replication_slot('s') IS NULL", "calls pg_drop_replication_slot"),
        ("pg_terminate_backend\n (pid)", "calls pg_terminate_backend"),
        ('"pg_sleep"(9) IS NULL', "calls"),
        ("\"a'b\" = 1 OR pg_sleep('9') IS NULL", "calls pg_sleep"),
        ("'a\"b' = v OR pg_sleep(9) IS NULL OR v = '\"'", "calls pg_sleep"),
        ("U&\"pg_sle!0065p\" UESCAPE '!' (9) IS NULL", "has UESCAPE"),
        ("EXISTS (SELECT FROM secret)", "has SELECT"),
        ("id IN (TABLE secret)", "has TABLE"),
        ("other.lower(name) = 'x'", "a name with a dot"),
        ("(t).pg_sleep IS NULL", "a name with a dot"),
        ("id OPERATOR(other.=) 1", "a name with a dot"),
        ("v::other.type = 'x'", "a name with a dot"),
        ("cast(v AS int) = 1", "calls cast"),
    ],
)
def test_what_may_do_more_is_not_plain(text: str, said: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - its text is compared
        check_plain(text)
    assert said in str(refused.value)
