"""`walstream run` at a terminal of 80 columns, and in a pipe."""

import json
import re
import sys
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database
from tests.support.fixtures.walstream import Runs
from tests.support.programs.pty_screen import PtyProgram
from tests.support.programs.walstream import Walstream, toml

pytestmark = pytest.mark.same_on_15

COMMAND = Path(sys.executable).with_name("walstream")
CLOCK = re.compile(r"\b\d\d:\d\d:\d\d ")
STATUS = re.compile(r"app  [a-z]+( [━─]| · |$)")
REFUSED = 1  # a port that no broker has


def at_terminal(walstream: Walstream) -> PtyProgram:
    walstream.configuration.write_text(toml(walstream.document()), "utf-8")
    return PtyProgram([COMMAND, "run", "-c", walstream.configuration])


def never_mixed(program: PtyProgram) -> int:
    """Return how many status lines there were; fail where one shares a line."""
    found = 0
    for moment in program.moments:
        for line in moment:
            if STATUS.search(line):
                found += 1
                assert STATUS.match(line), line
                assert not CLOCK.search(line), line
    return found


def end_by_ctrl_c(program: PtyProgram) -> None:
    program.press_ctrl_c()
    assert program.wait() == 0, program.text
    row, column = program.emulator.cursor
    assert not any(program.emulator.lines[row:]), program.text
    assert column == 0
    assert program.emulator.cursor_shown
    assert not [line for line in program.emulator.lines if STATUS.match(line)]


def test_a_first_start_is_lines_for_people(database: Database, runs: Runs) -> None:
    database.execute(
        "CREATE TABLE public.t (id int PRIMARY KEY, v text);"
        "INSERT INTO t SELECT g, 'x' FROM generate_series(1, 3000) g"
    )
    walstream = runs(database.dsn, source={"backfill": "initial", "tables": ["*.*"]})
    walstream.top = {
        "http": {"listen": "127.0.0.1:0"},
        "stats_interval": "1s",
        "spark": {"min_size": "0"},  # it takes long enough for a bar
    }
    with at_terminal(walstream) as program:
        program.until("streaming from", 150)
        program.until("sent")
        database.execute("INSERT INTO t VALUES (0, 'secret value')")
        program.until("1 sent")
        end_by_ctrl_c(program)
        text = program.text
    assert never_mixed(program) > 3
    assert any("━" in line or "─" in line for m in program.moments for line in m)
    assert re.search(r"app: backfilled 1 table, 3,000 rows, [\d.]+ s", text)
    assert re.search(r"streaming from \S+: publications? walstream", text)
    assert re.search(r"status page: http://127\.0\.0\.1:\d+", text)
    assert "drained" in text
    for machine in ("{", "stats", "event=", "secret value", "Traceback"):
        assert machine not in text


def test_a_pipe_gets_json_alone(database: Database, runs: Runs) -> None:
    database.execute("CREATE TABLE public.t (id int PRIMARY KEY)")
    walstream = runs(database.dsn, source={"tables": ["*.*"]})
    walstream.top = {"http": {"listen": ""}, "stats_interval": "1s"}
    with walstream:
        walstream.until("source=app kind=postgres")
        assert walstream.terminate() == 0
        lines = walstream.text.splitlines()
    assert all(json.loads(line)["event"] for line in lines)
    assert "\x1b" not in walstream.text


def test_kafka_that_is_away_is_named_at_once(database: Database, runs: Runs) -> None:
    database.execute("CREATE TABLE public.t (id int PRIMARY KEY)")
    walstream = runs(database.dsn, source={"tables": ["*.*"]})
    walstream.bootstrap = f"127.0.0.1:{REFUSED}"
    with at_terminal(walstream) as program:
        program.until(
            f"waiting for Kafka at 127.0.0.1:{REFUSED}: connection refused", 60
        )
        wait_until(lambda: never_mixed(program) > 1, 30, "a status line")
        end_by_ctrl_c(program)


def test_a_right_that_is_missing_is_shown_with_sql_to_paste(
    database: Database, runs: Runs
) -> None:
    database.execute("CREATE TABLE public.t (id int PRIMARY KEY)")
    walstream = runs(database.dsn, source={"tables": [], "publication": "other"})
    with at_terminal(walstream) as program:
        assert program.wait() == 2, program.text
        lines = [line.rstrip() for line in program.emulator.lines]
    assert [line for line in lines if line.startswith("    SQL> CREATE PUBLICATION")]
    assert not [line for line in lines if "\\n" in line or "\\'" in line]
