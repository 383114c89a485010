"""Several names, and sizes, in one line."""

import pytest

from walstream.telemetry.human import because, few, size, tables, which


def test_few_names_are_said_and_more_are_counted() -> None:
    assert few(["b", "a"]) == "a, b"
    assert few({"c", "b", "a"}) == "a, b, c"
    assert few(["e", "d", "c", "b", "a"]) == "a, b, c and 2 more"


def test_one_table_is_the_subject_and_many_are_counted() -> None:
    assert tables(["public.t"]) == "table public.t"
    assert which(["public.t"]) == ""
    assert tables({"a": 1, "b": 2}) == "2 tables"
    assert which(["b", "a"]) == ": a, b"


def test_a_reason_stands_alone_where_the_subject_is_one() -> None:
    assert because({"t": "no key"}) == "no key"
    assert because({"t": "no key", "s": "gone"}) == "s: gone, t: no key"


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1536 << 20, "1.5 GiB"),
        (3 << 40, "3.0 TiB"),
    ],
)
def test_size_is_said_in_the_largest_unit_that_it_fills(number: int, said: str) -> None:
    assert size(number) == said
