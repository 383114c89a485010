"""Logs: no secret, one line an entry, whatever is logged."""

import ast
import base64
import json
import logging
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import structlog

from tests.support.project.own_coverage import ROOT
from walstream.errors import ConfigError
from walstream.telemetry import logs

CANARY = "hunter2-canary"

Lines = Callable[[], list[dict[str, Any]]]


def scrub(text: str) -> str:
    return text.replace(CANARY, "***")


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    structlog.reset_defaults()
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.fixture
def lines(capsys: pytest.CaptureFixture[str]) -> Lines:
    """Read what was logged, as JSON: each line is one entry."""

    def read() -> list[dict[str, Any]]:
        logged = capsys.readouterr().err
        assert CANARY not in logged
        return [json.loads(line) for line in logged.splitlines()]

    return read


def configured(level: str = "debug", **fields: str) -> Any:
    logs.configure(level, scrub, **fields)
    return structlog.get_logger()


def test_entry_is_one_line_of_json(lines: Lines) -> None:
    log = configured(source="app")
    log.info("first\nsecond", text="a\r\nb\u2028c", number=7)
    (entry,) = lines()
    assert entry["event"] == "first\nsecond"
    assert (entry["number"], entry["source"], entry["level"]) == (7, "app", "info")
    assert entry["timestamp"].endswith("Z")


def test_a_thread_marks_its_lines_too(lines: Lines) -> None:
    log = configured(source="app")
    thread = threading.Thread(target=lambda: log.info("from a thread"))
    thread.start()
    thread.join()
    assert lines()[0]["source"] == "app"


def test_entries_below_the_level_are_left_out(lines: Lines) -> None:
    log = configured("warning")
    log.info("quiet")
    log.warning("loud")
    assert [entry["event"] for entry in lines()] == ["loud"]


class Holder:
    def __repr__(self) -> str:
        return f"Holder({CANARY})"


@pytest.mark.parametrize(
    "value",
    [
        CANARY,
        f"password={CANARY} host=h",
        [CANARY],
        (1, CANARY),
        {"dsn": CANARY},
        {CANARY: 1},
        {"deep": [{"er": CANARY}]},
        CANARY.encode(),
        ConfigError(CANARY, hint=CANARY),
        Holder(),
        {CANARY},
    ],
    ids=lambda value: type(value).__name__,
)
def test_secret_never_appears_whatever_holds_it(lines: Lines, value: object) -> None:
    configured().info(f"to {CANARY}", field=value)
    (entry,) = lines()
    assert entry["event"] == "to ***"
    assert "***" in json.dumps(entry["field"])


def test_secret_in_a_traceback_never_appears(lines: Lines) -> None:
    log = configured()
    try:
        raise ValueError(CANARY)
    except ValueError:
        log.exception("failed")
    (entry,) = lines()
    assert "ValueError: ***" in entry["exception"]


def test_secret_in_context_never_appears(lines: Lines) -> None:
    configured(source=CANARY).info("x")
    assert lines()[0]["source"] == "***"


def test_secret_logged_by_a_library_never_appears(lines: Lines) -> None:
    configured()
    logging.getLogger("some.library").error("cannot reach %s", CANARY)
    (entry,) = lines()
    assert entry["event"] == "cannot reach ***"
    assert (entry["level"], entry["logger"]) == ("error", "some.library")


def test_librdkafka_calls_an_error_what_it_repairs(lines: Lines) -> None:
    configured()
    logging.getLogger("librdkafka").error("connection refused")
    assert lines()[0]["level"] == "debug"


@pytest.mark.parametrize(
    "library",
    [
        "py4j.java_gateway",
        "py4j.clientserver",
        "psycopg",
        "psycopg.pool",
        "sqlalchemy.engine.Engine",
        "asyncio",
        "librdkafka",
        "pyspark",
        "urllib3.connectionpool",
        "walstreams",
        "one.that.nobody.knows",
    ],
)
@pytest.mark.parametrize("its_own", [logging.NOTSET, logging.DEBUG])
@pytest.mark.parametrize("switched", [False, True])
def test_what_a_library_says_below_a_warning_is_not_logged_at_any_level(
    lines: Lines, library: str, its_own: int, *, switched: bool
) -> None:
    log = configured("info" if switched else "debug")
    if switched:
        logs.set_level("debug")
    theirs = logging.getLogger(library)
    theirs.setLevel(its_own)
    try:
        # "Command to send: ...", a task in base64: no scrubber knows a secret in that
        theirs.debug("Command to send: %s", base64.b64encode(CANARY.encode()))
        theirs.info("connected as %s", CANARY)
        theirs.warning("slow")
        log.debug("ours")
    finally:
        theirs.setLevel(logging.NOTSET)
    assert [entry["event"] for entry in lines()] == ["slow", "ours"]


@pytest.mark.parametrize(
    "own", ["walstream.testing.servers.jars", "consumer.group.assigned_partition"]
)
def test_own_loggers_follow_the_level(lines: Lines, own: str) -> None:
    configured("info")
    logging.getLogger(own).debug("before")
    logs.set_level("debug")
    logging.getLogger(own).debug("meanwhile")
    logs.set_level("error")
    logging.getLogger(own).error("after")
    assert [entry["event"] for entry in lines()] == ["meanwhile", "after"]


@pytest.mark.parametrize("package", ["walstream", "consumer"])
def test_no_client_of_kafka_writes_past_the_log(package: str) -> None:
    clients = ("Producer", "Consumer", "AdminClient")
    made = [
        node
        for path in (ROOT / package).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in clients
    ]
    assert made
    for node in made:
        # without one librdkafka writes to stderr itself, its property `debug` too
        assert "logger" in {word.arg for word in node.keywords}, ast.unparse(node)


def test_numbers_and_nulls_stay_what_they_are(lines: Lines) -> None:
    configured().info("x", number=7, share=0.5, nothing=None, yes=True, some=[1, "a"])
    (entry,) = lines()
    assert (entry["number"], entry["share"], entry["nothing"]) == (7, 0.5, None)
    assert (entry["yes"], entry["some"]) == (True, [1, "a"])


def test_terminal_gets_readable_lines_without_secrets(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    configured().info(f"to {CANARY}", field=[CANARY])
    logged = capsys.readouterr().err
    assert CANARY not in logged
    assert "to ***" in logged
    assert not logged.startswith("{")


def test_a_log_that_cannot_be_written_ends_nothing() -> None:
    code = (
        "from walstream.telemetry import logs; import structlog\n"
        "logs.configure('info', str)\n"
        "for _ in range(100): structlog.get_logger().info('x' * 100_000)\n"
        "logs.STDERR.flush(); print('went on', flush=True)\n"
        "import os; os._exit(0)"
    )
    with open("/dev/full", "w") as full:  # noqa: PTH123 - a device
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=subprocess.PIPE,
            stderr=full,
            text=True,
            check=False,
            timeout=60,
        )
    assert (done.returncode, done.stdout) == (0, "went on\n")


def test_nothing_that_is_logged_drives_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("NO_COLOR", "1")
    logs.configure("info", str)
    name = "\x1b]0;owned\x07\x9b1A\u202e"
    structlog.get_logger().info(f"event of {name}\nforged", table=name)
    said = capsys.readouterr().err
    assert "owned" in said
    assert "\x1b]" not in said
    assert not {char for char in said if not char.isprintable()} - {"\n", "\x1b"}
    assert said.count("\n") == 1
