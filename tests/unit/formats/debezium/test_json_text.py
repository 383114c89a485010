"""Texts as Jackson writes them: what Kafka's JsonConverter gave was recorded."""

import json

import pytest

from walstream.formats.debezium.json_text import inner_text, json_text


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", '""'),
        ("plain", '"plain"'),
        ('a"b\\c/d', '"a\\"b\\\\c/d"'),
        ("\b\t\n\f\r", '"\\b\\t\\n\\f\\r"'),
        ("\x01\x0b\x1f\x7f", '"\\u0001\\u000B\\u001F\x7f"'),
        ("é\u2028\ufffd", '"é\u2028\ufffd"'),
        ("x\U0001f600y", '"x\\uD83D\\uDE00y"'),
        ("\U00010000\U0010ffff", '"\\uD800\\uDC00\\uDBFF\\uDFFF"'),
        ("\\u001f \x1f", '"\\\\u001f \\u001F"'),
        ("\\\x1b\U0001f600", '"\\\\\\u001B\\uD83D\\uDE00"'),
    ],
)
def test_a_text_is_escaped_as_by_jackson(text: str, written: str) -> None:
    assert json_text(text) == written
    assert json.loads(json_text(text)) == text


def test_in_a_text_that_is_a_document_only_control_characters_are_escaped() -> None:
    assert inner_text('\x1f"\U0001f600') == '"\\u001F\\"\U0001f600"'
    assert inner_text("a") == '"a"'
