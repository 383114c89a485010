"""Patterns of tables and topics."""

import re

import pytest

from consumer.name_pattern import is_pattern, matcher, subscription


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("shop.*", "shop.orders", "shop2.orders"),
        ("shop.order?", "shop.orders", "shop.order"),
        ("*.orders", "eu.shop.orders", "shop.orders_old"),
        ("a-b.c_1", "a-b.c_1", "a-bxc_1"),
    ],
)
def test_a_topic_is_subscribed_to_as_a_table_is_matched(
    pattern: str, matching: str, other: str
) -> None:
    matches = matcher([pattern])
    assert matches(matching)
    assert not matches(other)
    expression = subscription(pattern)
    if is_pattern(pattern):
        assert re.search(expression, matching)
        assert not re.search(expression, other)
    else:
        assert expression == pattern


def test_a_regular_expression_is_left_as_it_is() -> None:
    assert subscription("^shop\\.(a|b)?") == "^shop\\.(a|b)?"


def test_several_patterns_match_what_one_of_them_does() -> None:
    matches = matcher(["a.*", "b.c"])
    assert [matches(name) for name in ("a.x", "b.c", "b.d")] == [True, True, False]
    assert not matcher([])("")
