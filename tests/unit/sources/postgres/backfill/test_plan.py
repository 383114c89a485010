"""Cutting tables: every page, and every key, is in exactly one chunk."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from walstream.sources.postgres.backfill.chunk import KeyRange, PageRange
from walstream.sources.postgres.backfill.plan import by_keys, by_pages, by_pages_size

BIG = st.integers(0, 1 << 45)


@given(st.integers(0, 1 << 32), BIG, st.integers(1, 1 << 40))
def test_every_page_is_in_one_range(pages: int, size: int, chunk_bytes: int) -> None:
    spans = by_pages(pages, size, chunk_bytes)
    assert spans[0].low == 0
    assert spans[-1].high is None
    for before, after in pairwise(spans):
        assert before.high == after.low > before.low
    assert len(spans) <= 4096
    assert abs(sum(by_pages_size(size, pages, span) for span in spans) - size) <= max(
        len(spans), size if not pages else 0
    )


def test_a_table_is_cut_by_its_size_with_toast() -> None:
    assert by_pages(100, 16 << 20, 4 << 20) == [
        PageRange(0, 25),
        PageRange(25, 50),
        PageRange(50, 75),
        PageRange(75, None),
    ]
    assert by_pages(0, 8192, 1 << 20) == [PageRange(0, None)]


def test_key_ranges_meet_at_their_bounds() -> None:
    assert by_keys(("a",), [("1",), ("2",)]) == [
        KeyRange(("a",), None, ("1",), 1, 3),
        KeyRange(("a",), ("1",), ("2",), 2, 3),
        KeyRange(("a",), ("2",), None, 3, 3),
    ]
    assert by_keys(("a",), []) == [KeyRange(("a",), None, None)]
