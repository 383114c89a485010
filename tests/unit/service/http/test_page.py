"""The page as a document: all in it is escaped, nothing comes from elsewhere."""

import re

from tests.unit.service.http.conftest import Change
from walstream.service.http import page
from walstream.service.http.board import Board
from walstream.service.http.series import ChartSpan


def render(made: Board, span: ChartSpan = ChartSpan.MINUTES) -> str:
    truth = made.truth()
    assert truth is not None
    history = page.History(made.series, made.log.events, span)
    return page.render(truth, made.config, history)


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
    assert html.count("<caption>") == html.count("<table ")
    assert 'scope="col"' in html
    assert 'scope="row"' in html
    assert "● streaming" in html
    assert 'role="status" aria-live="polite"' in html


def test_tables_show_their_topic_count_and_rate(board: Change) -> None:
    html = render(board())
    assert 'data-of="Topic"' in html
    assert ">public.t</span>" in html  # the topic of the template
    assert re.search(r'data-of="Total"><span data-k="[^"]+">12</span>', html)


def test_a_hostile_name_is_text_everywhere(board: Change) -> None:
    hostile = '<img src=x onerror=alert(1)>"'
    sink = {"waiting": True, "outage": {"why": hostile, "hint": hostile}}
    report = {"rows": 1, "state": "error", "error": hostile}
    html = render(
        board(
            stalls=[hostile],
            sinks={"kafka": {**sink, "tables": {hostile: {"dropped": 1}}}},
            beside={hostile: report},
            capture={
                "publications": [hostile],
                "limits": {hostile: {"reason": hostile, "sql": hostile}},
            },
            error={"at": 1.0, "error": hostile, "hint": hostile, "sql": hostile},
        )
    )
    assert "<img" not in html
    assert html.count("&lt;img src=x") >= 8


def test_the_wal_that_is_held_is_a_bar_against_its_alarm(board: Change) -> None:
    html = render(board())
    assert '<meter min="0" max="10737418240"' in html
    assert "of 10 GiB (alarm), slot walstream: reserved" in html


def test_the_span_of_the_charts_is_a_link(board: Change) -> None:
    html = render(board(), ChartSpan.HOUR)
    assert '<a href="?span=1h" aria-current="true">1 h</a>' in html
    assert "Lag, last 1 h" in html
