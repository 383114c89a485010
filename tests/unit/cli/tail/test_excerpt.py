"""One value in few words, never taken for another."""

import pytest

from walstream.cli.tail.excerpt import excerpt, first_difference
from walstream.cli.tail.layout import plain


def shown(text: str, longest: int | None = 60, start: int = 0) -> str:
    return plain(excerpt(text, longest, start=start))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("new", "new"),
        ("two words", "two words"),
        ("2020-01-02 03:04:05+00", "2020-01-02 03:04:05+00"),
        (r"C:\new", r"C:\new"),
        ('{"a": 1, "b": 2}', '{"a": 1, "b": 2}'),
        ("", '""'),
        ("null", '"null"'),
        ("NULL", '"NULL"'),
        ("nothing changed", '"nothing changed"'),
        ("(absent: n)", '"(absent: n)"'),
        ("a, b: 1", '"a, b: 1"'),
        ("a → b", '"a → b"'),
        (" x", '" x"'),
        ('"x"', r'"\"x\""'),
        ("a\nb", r'"a\nb"'),
        ("a\\nb\n", r'"a\\nb\n"'),
        ("\x1b[2J", r'"\x1b[2J"'),
    ],
)
def test_quotes_stand_where_a_text_could_be_misread(text: str, expected: str) -> None:
    assert shown(text) == expected


def test_json_is_never_quoted() -> None:
    assert plain(excerpt("null", 60, quotable=False)) == "null"


def test_long_text_is_cut_with_the_count_of_what_is_left_out() -> None:
    assert shown("x" * 100) == "x" * 60 + "…(+40)"
    assert shown("x" * 100, None) == "x" * 100
    assert shown("x" * 70) == "x" * 70  # the count would be as long


def test_excerpt_from_the_middle_counts_both_sides() -> None:
    assert shown("x" * 200, start=50) == "(+50)…" + "x" * 60 + "…(+90)"


def test_space_at_a_cut_is_no_reason_for_quotes() -> None:
    assert shown("four " * 100, 15) == "four four four …(+485)"
    assert shown(" four" * 100, 15, 485) == "(+485)… four four four"
    assert shown(" four" * 100, 15) == '" four four four"…(+485)'
    assert shown("four " * 3) == '"four four four "'


@pytest.mark.parametrize(
    ("one", "other", "start"),
    [
        ("short a", "short b", 0),
        ("x" * 100, "y" * 100, 0),
        ("x" * 500 + "a", "x" * 500 + "b", 480),
        ("x" * 500, "x" * 600, 480),
        ("x" * 50, "x" * 100, 30),
        ("x" * 100, "", 0),
    ],
)
def test_difference_of_long_texts_is_seen(one: str, other: str, start: int) -> None:
    assert first_difference(one, other, 60) == start
