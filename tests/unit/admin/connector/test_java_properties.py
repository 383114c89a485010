"""A .properties file is read as Java does; tests/integration compares with Java."""

import pytest

from walstream.admin.connector.java_properties import read


@pytest.mark.parametrize(
    ("text", "entries"),
    [
        ("a=b\nc: d\r\ne f", [("a", "b"), ("c", "d"), ("e", "f")]),
        ("# no\n ! no\n\n a = b ", [("a", "b ")]),
        ("a=b\\\n   c\\\n\nd=e", [("a", "bc"), ("d", "e")]),
        ("a=b\\\\\nc=d", [("a", "b\\"), ("c", "d")]),
        ("a\\ b\\:c = = d", [("a b:c", "= d")]),
        ("k=\\u00e9\\ud83d\\ude00\\t\\q", [("k", "é😀\tq")]),
        ("a=1\na=2", [("a", "1"), ("a", "2")]),
        ("regex=public\\\\.orders", [("regex", r"public\.orders")]),
        ("a", [("a", "")]),
    ],
)
def test_entries_are_those_of_java(text: str, entries: list[tuple[str, str]]) -> None:
    assert read(text) == entries


def test_a_broken_code_is_refused_without_the_value() -> None:
    with pytest.raises(ValueError, match="hexadecimal") as refused:
        read("database.password=s3cret\\u00")
    assert "s3cret" not in str(refused.value)
