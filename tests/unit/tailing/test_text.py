r"""Nothing that drives a terminal is left: it is spelt out."""

import json

import pytest

from walstream.tailing.text import as_text, escape_json, is_text

DRIVING = "\x1b[31m\r\n\t\0\x07\x7f\x9b31m\u202e\u2066\u200b\u2028\ufeff\U000e0001"


def test_json_stays_the_same_json() -> None:
    document = json.dumps({"key": f"a{DRIVING}z"}, ensure_ascii=False)
    spelt = escape_json(document)
    assert spelt.isprintable()
    assert json.loads(spelt) == json.loads(document)


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
