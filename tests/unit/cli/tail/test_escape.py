"""Bytes of a record as text."""

import pytest

from walstream.cli.tail.escape import as_text, is_text


@pytest.mark.parametrize(
    ("value", "text", "shown"),
    [
        (b"a\xc3\xa9", True, "aé"),
        (b"a\xff\x00", False, "a\\xff\0"),
        (b"\xed\xa0\x80", False, r"\xed\xa0\x80"),  # a lone surrogate
    ],
)
def test_bytes_that_are_no_text_are_spelt(value: bytes, text: bool, shown: str) -> None:
    assert is_text(value) is text
    assert as_text(value) == shown
