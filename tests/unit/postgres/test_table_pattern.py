"""What a pattern that matches no table is taken to mean."""

import pytest

from walstream.postgres.table_pattern import unmatched

NAMES = ["shop.orders", "shop.customers", "public.t"]


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("shop.order", "; did you mean 'shop.orders'?"),
        ("Shop.Orders", "; did you mean 'shop.orders'?"),
        ("sohp.*", "; did you mean 'shop.*'?"),
        ("elsewhere.*", ""),
    ],
)
def test_it_is_named_with_what_may_be_meant(pattern: str, said: str) -> None:
    wanted = ["shop.*", pattern, "public.?"]
    assert unmatched(wanted, NAMES) == {pattern: f"matches no table{said}"}


def test_without_tables_nothing_is_meant() -> None:
    assert unmatched(["a.*"], []) == {"a.*": "matches no table"}
