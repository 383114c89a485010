"""Where a polled table stands."""

from walstream.sources.sql.place import place


def test_a_schema_is_what_stands_before_the_last_dot() -> None:
    assert place("legacy", "shop.orders") == ("shop", "orders")


def test_without_one_the_source_stands_for_it() -> None:
    assert place("legacy", "orders") == ("legacy", "orders")
