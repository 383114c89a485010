"""Sentences of events."""

import pytest

from tests.support.project.own_coverage import ROOT
from walstream.cli.live import log_lines, sentences
from walstream.cli.live.sentences import of, pairs, plain_cause


@pytest.mark.parametrize(
    ("event", "fields", "sentence"),
    [
        (
            "streaming",
            {"slot": "w", "lsn": "0/4A8", "publications": ["a", "b"]},
            "streaming from 0/4A8: publications a, b",
        ),
        ("streaming", {"slot": "w", "lsn": "0/4A8"}, "streaming from 0/4A8"),
        ("streaming", {"topics": 1}, "streaming 1 topic"),
        (
            "HTTP listens",
            {"address": "127.0.0.1:8321", "key": "http.listen"},
            "status page: http://127.0.0.1:8321",
        ),
        (
            "HTTP listens",
            {"address": "[::]:80", "key": "http.probes"},
            "probes: http://[::]:80/health and /ready",
        ),
        (
            "backfill ended",
            {"tables": 1, "rows": 1, "seconds": 0.4, "given_up": ["a.b"]},
            "backfilled 1 table, 1 row, 0.4 s; skipped: a.b",
        ),
        ("polling", {"tables": 2}, "polling 2 tables"),
        ("drained", {}, "drained: all that was read is delivered"),
        (
            "the configuration was read",
            {"changes": [], "lines": []},
            "configuration reloaded: nothing changed",
        ),
    ],
)
def test_an_event_has_its_sentence(
    event: str, fields: dict[str, object], sentence: str
) -> None:
    assert of(event, fields) == sentence


def test_an_event_that_lacks_a_field_shows_those_it_has() -> None:
    assert of("slot created", {"slot": "w"}) == "slot created  (slot w)"


def test_fields_without_a_value_are_left_out() -> None:
    assert pairs({"a_b": 1200, "c": "", "d": None, "e": [], "f": ["x", 1]}) == (
        "a b 1,200, f x, 1"
    )


def test_an_address_that_is_not_reached_is_said_in_one_way() -> None:
    for error in (
        "Connect to ipv4#10.0.0.1:9092 failed: Connection refused",
        "connecting to 10.0.0.1:9092: Connection refused",
    ):
        assert plain_cause(error) == "10.0.0.1:9092: connection refused"
    for error, cause in (
        (
            (
                "connecting to PostgreSQL: connection failed: connection to server at"
                ' "db", port 5999 failed: Connection refused. Is the server running on'
                " that host and accepting TCP/IP connections?"
            ),
            "PostgreSQL at db:5999: connection refused",
        ),
        (
            (
                'connection to server at "db" (10.0.0.1), port 5432 failed: FATAL:'
                '  role "x" does not exist'
            ),
            'PostgreSQL at db:5432: FATAL:  role "x" does not exist',
        ),
    ):
        assert plain_cause(error) == cause
    assert plain_cause("1/1 brokers are down") == "1/1 brokers are down"


def test_each_event_that_is_known_here_is_one_that_is_logged() -> None:
    source = "\n".join(
        path.read_text("utf-8")
        for path in (ROOT / "walstream").rglob("*.py")
        if "live" not in path.parts
    )
    known = sentences.SENTENCES.keys() | log_lines.HIDDEN | log_lines.JOINED
    assert {event for event in known if f'"{event}"' not in source} == set()
