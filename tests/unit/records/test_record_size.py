"""A record's size is that of its parts and what is around them."""

from walstream.records.record_size import RECORD_OVERHEAD, size_of


def test_all_parts_count() -> None:
    assert size_of(b"key", b"value", []) == 8 + RECORD_OVERHEAD
    assert size_of(None, None, []) == RECORD_OVERHEAD
    assert size_of(b"k", b"v", [("title", b"text"), ("no", None)]) == (
        2 + 9 + 2 + RECORD_OVERHEAD
    )
