"""Lines of the log, laid out for a person."""

import io
import json
import re

from walstream.cli.live.log_lines import print_line, read
from walstream.cli.output import EscapingConsole

SQL = "CREATE PUBLICATION \"walstream\" WITH (publish = 'insert');\nSELECT 1;"


def shown(event: str, level: str = "info", width: int = 100, **fields: object) -> str:
    entry = {
        "source": "app",
        "event": event,
        "level": level,
        "timestamp": "2026-11-24T15:04:05.000001Z",
        **fields,
    }
    text = raw(json.dumps(entry).encode(), width)
    return re.sub(r"^\d\d:04:05", "", text)


def raw(line: bytes, width: int = 100) -> str:
    screen = io.StringIO()
    console = EscapingConsole(file=screen, width=width, highlight=False)
    print_line(console, line, lambda command: f"{command} -c my.toml")
    return screen.getvalue()


def test_an_event_is_a_sentence_with_its_figures() -> None:
    ended = shown("backfill ended", tables=3, rows=200_003, seconds=25.1, given_up=[])
    assert ended == "    app: backfilled 3 tables, 200,003 rows, 25 s\n"


def test_an_event_without_a_sentence_shows_its_fields() -> None:
    assert shown("of another kind", rows=1200, done=True, empty="") == (
        "    app: of another kind  (rows 1,200, done yes)\n"
    )


def test_an_error_is_a_finding_whose_sql_can_be_pasted() -> None:
    text = raw(
        json.dumps(
            {
                "source": "app",
                "error": "publication walstream does not exist",
                "hint": "create it",
                "repair": SQL,
                "event": "stopped",
                "level": "error",
            }
        ).encode()
    )
    assert text.split("\n") == [
        "  ✗ app: publication walstream does not exist",
        "    create it",
        "    SQL> CREATE PUBLICATION \"walstream\" WITH (publish = 'insert');",
        "    SQL> SELECT 1;",
        "",
    ]


def test_a_command_is_completed_by_the_configuration_file() -> None:
    text = shown("stopped", "error", error="gone", repair="walstream positions reset a")
    assert "$ walstream positions reset a -c my.toml" in text


def test_a_long_command_is_not_wrapped() -> None:
    command = "walstream backfill " + "t" * 200
    text = raw(
        json.dumps({"event": "x", "level": "warning", "repair": command}).encode()
    )
    assert f"    $ {command} -c my.toml\n" in text


def test_what_an_entry_is_about_is_its_subject() -> None:
    text = shown("table has no replica identity", "warning", table="shop.events")
    assert text == "  ! app, shop.events: table has no replica identity\n"


def test_kafka_that_is_away_is_named_with_its_cause() -> None:
    text = shown(
        "waiting for Kafka",
        "warning",
        brokers="127.0.0.1:9099",
        error="Connect to ipv4#127.0.0.1:9099 failed: Connection refused",
        hint="start the broker",
    )
    first, second, _ = text.split("\n")
    assert first == "  ! app: waiting for Kafka at 127.0.0.1:9099: connection refused"
    assert second == "    start the broker"


def test_figures_of_the_status_line_are_no_lines() -> None:
    assert shown("stats", line="x=1") == ""
    assert shown("backfilling", rows=1) == ""


def test_a_line_that_is_no_entry_is_printed_as_it_is() -> None:
    assert raw(b"WARNING: \x1b[2Ja library") == "WARNING: \\x1b[2Ja library\n"
    assert raw(b'{"no": "event"}') == '{"no": "event"}\n'
    assert raw(b'{"event": "cut') == '{"event": "cut\n'


def test_json_that_nests_too_deep_is_printed_as_it_is() -> None:
    for depth in (700, 100_000):  # what can be read, and what cannot
        nested = b"[" * depth + b"]" * depth
        for level in (b"info", b"error"):
            line = b'{"event": "x", "level": "%s", "error": %s}' % (level, nested)
            assert raw(line) == f"{line.decode()}\n"


def test_a_name_forges_no_line_and_drives_no_terminal() -> None:
    name = "\x1b]0;owned\x07\n  ✓ nothing"
    for level in ("info", "warning", "error", "debug"):
        text = shown("event", level, width=300, table=name, sink=name)
        assert "\x1b" not in text
        assert text.count("\n") == 1, text


def test_a_traceback_keeps_its_lines() -> None:
    text = shown("failed", "error", exception="Traceback:\n  File x\nOSError")
    assert text.count("\n") == 4


def test_the_time_is_the_local_clock() -> None:
    entry = read(b'{"event": "x", "timestamp": "2026-11-24T15:04:05.1Z"}')
    assert entry is not None
    assert re.fullmatch(r"\d\d:\d4:05", entry.time)
    for other in (b"yesterday", b"0001-01-01T00:00:00+14:00"):
        odd = read(b'{"event": "x", "timestamp": "%s"}' % other)
        assert odd is not None
        assert odd.time == ""


def test_what_is_tried_again_says_so_once() -> None:
    for hint in ("", "start it", "walstream tries again by itself"):
        text = shown("trying again", "warning", error="refused", hint=hint)
        assert text.count("again") == 1
