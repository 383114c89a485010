"""Names and texts as SQL writes them."""

import pytest

from walstream.postgres import quoting


@pytest.mark.parametrize(
    ("parts", "written"),
    [
        (("app",), '"app"'),
        (("App user",), '"App user"'),
        (('a"b',), '"a""b"'),
        (("public", "Orders"), '"public"."Orders"'),
    ],
)
def test_name_is_always_quoted(parts: tuple[str, ...], written: str) -> None:
    assert quoting.name(*parts) == written


@pytest.mark.parametrize(
    ("value", "written"), [("x", "'x'"), ("it's", "'it''s'"), ("a\\b", r"E'a\\b'")]
)
def test_text_is_a_literal(value: str, written: str) -> None:
    assert quoting.text(value) == written
