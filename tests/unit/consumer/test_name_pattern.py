"""Patterns of tables and topics."""

import re
from itertools import product

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
    assert subscription("^a", own_out=True) == "^a"


def test_what_begins_with_a_caret_is_a_pattern_without_a_star_too() -> None:
    assert is_pattern("^shop")
    assert not is_pattern("shop")


def test_an_expression_leaves_out_kafka_s_own_topics_where_it_has_to() -> None:
    names = [
        "".join(one) for length in (1, 2, 3, 4) for one in product("a_", repeat=length)
    ]
    for length in (1, 2, 3):
        for given in product("a_*?", repeat=length):
            pattern = "".join(given)
            if not is_pattern(pattern):
                continue
            expression = re.compile(subscription(pattern, own_out=True))
            matches = matcher([pattern])
            for name in names:
                wanted = matches(name) and not name.startswith("__")
                assert bool(expression.search(name)) == wanted, (pattern, name)
    assert subscription("shop.*", own_out=True) == r"^shop\..*$"


def test_several_patterns_match_what_one_of_them_does() -> None:
    matches = matcher(["a.*", "b.c"])
    assert [matches(name) for name in ("a.x", "b.c", "b.d")] == [True, True, False]
    assert not matcher([])("")
