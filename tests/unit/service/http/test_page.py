"""The page as a document: all in it is escaped, nothing comes from elsewhere."""

import re

from tests.unit.service.http.conftest import Change
from walstream.service.http import page


def render(made: object) -> str:
    truth = made.truth()  # type: ignore[attr-defined]
    return page.render(truth, made.samples)  # type: ignore[attr-defined]


def test_what_servers_say_is_text(board: Change) -> None:
    html = render(board(stalls=["<script>alert(1)</script> & 'x'"]))
    assert "<script>alert" not in html
    assert "&lt;script&gt;alert(1)" in html


def test_it_loads_nothing_from_elsewhere(board: Change) -> None:
    html = render(board())
    assert not re.findall(r"(?:https?:)?//[a-z]", html.replace("// ", ""))
    assert "style=" not in html  # the policy would refuse it
    assert not re.findall(r"\son[a-z]+=", html)


def test_each_key_is_there_once(board: Change) -> None:
    keys = re.findall(r'data-k="([^"]+)"', render(board()))
    assert len(keys) == len(set(keys)) > 10


def test_tables_have_heads_and_captions_and_states_have_words(board: Change) -> None:
    html = render(board())
    assert html.count("<caption>") == html.count("<table")
    assert 'scope="col"' in html
    assert 'scope="row"' in html
    assert "● streaming" in html
    assert 'role="status" aria-live="polite"' in html
