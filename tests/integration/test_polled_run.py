"""An operator beside `walstream run` and `poll --once`: what they say, what they do."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.programs.polled_source import SOURCE, Polled, keys_of
from tests.support.programs.sqlite_source import execute, file_of
from tests.support.programs.verb import as_json, verb
from tests.support.programs.walstream import toml
from walstream.config import load
from walstream.status.lookup.sources import look
from walstream.status.model import SourceStatus
from walstream.testing.servers.port import free_port

TABLE = "CREATE TABLE t (id INTEGER PRIMARY KEY, v TEXT);"
ROWS = "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (5, 'c')"
TOO_LARGE = "INSERT INTO t VALUES (6, hex(zeroblob(50000)))"
SMALL = {"topic_config": {"max.message.bytes": 50_000}}
_COMMAND = Path(sys.executable).with_name("walstream")


@pytest.fixture
def polled(tmp_path: Path, kafka: KafkaServer, topic_prefix: str) -> Iterator[Polled]:
    url = f"sqlite:///{file_of(tmp_path)}"
    made = Polled(
        url, kafka.bootstrap, tmp_path, topic_prefix, sink=SMALL, tables={"t": {}}
    )
    yield made
    made.close()


def status(polled: Polled) -> SourceStatus:
    """Look as the command does."""
    (found,) = look(load(polled.configuration, {})).sources
    return found


def test_what_runs_is_told_and_goes_back_when_it_is_asked(
    polled: Polled, tmp_path: Path
) -> None:
    execute(file_of(tmp_path), TABLE + ROWS)
    polled.start().polling()
    with polled.reader() as reader:
        reader.count(3)
        seen: list[SourceStatus] = []

        def told() -> bool:
            seen.append(status(polled))
            return (seen[-1].state, seen[-1].tables["t"].rows) == ("polling", 3)

        wait_until(told, 30, "it is told")
        found = seen[-1]
        assert found.exit_code == 0
        assert [sink.state for sink in found.sinks] == ["delivering"]
        table = found.tables["t"]
        assert (table.position, table.missing_keys, table.gaps) == (5, 2, 1)
        assert table.rows_per_s is not None
        assert "does not show" in table.lacks_mark
        as_json(polled.configuration, "status", "status")
        shown = verb(polled.configuration, "positions", "show", SOURCE).stdout
        assert "polls it, and would continue from here" in shown

        rewind = ("positions", "rewind", SOURCE, "--to", "2", "--yes")
        done = verb(polled.configuration, *rewind)
        assert done.returncode == 0, done.stderr
        assert "polled again from there" in done.stdout
        reader.count(4)
        assert keys_of(reader)[3:] == [5]

        execute(file_of(tmp_path), TOO_LARGE)
        polled.until("a row blocks its table")
        wait_until(lambda: status(polled).exit_code == 5, 10, "it is red")
        (problem,) = status(polled).problems
        assert problem.startswith("blocked: the row with key 6 of table 't'")
        execute(file_of(tmp_path), "UPDATE t SET v = '' WHERE id = 6")
        reader.count(5)
        wait_until(lambda: status(polled).exit_code == 0, 10, "it is well again")
    reset = verb(polled.configuration, "positions", "reset", SOURCE, "--yes")
    assert "starts from scratch" in reset.stdout, reset.stderr
    assert polled.terminate() == 0


def test_a_poll_says_what_it_sent_of_each_table(polled: Polled, tmp_path: Path) -> None:
    other = "CREATE TABLE u (id INTEGER PRIMARY KEY);"
    execute(file_of(tmp_path), TABLE + ROWS + ";" + other)
    polled.tables = {"t": {}, "u": {}}
    busy = f"127.0.0.1:{free_port()}"
    with socket.create_server(("127.0.0.1", int(busy.rpartition(":")[2]))):
        polled.top = {"http": {"listen": busy}}  # a poll needs none
        done = polled.command("poll")
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{SOURCE}.t: 3 rows, up to key 5\n{SOURCE}.u: no new rows\n"
    again = polled.command("poll", "--once", SOURCE)
    assert again.returncode == 0, again.stderr
    assert again.stdout.splitlines()[0] == f"{SOURCE}.t: no new rows, up to key 5"
    polled.top = {}
    polled.start().polling()
    execute(file_of(tmp_path), "INSERT INTO t VALUES (9, 'z')")
    beside = verb(polled.configuration, "poll")
    assert beside.returncode == 0, beside.stderr
    assert beside.stdout.splitlines()[0].endswith(", up to key 9")


@pytest.mark.fault_long
def test_who_polls_once_hears_of_a_row_that_no_topic_takes(
    polled: Polled, tmp_path: Path
) -> None:
    execute(file_of(tmp_path), TABLE + TOO_LARGE)
    # all of it is named as seen from the folder that it is run in
    polled.dsn, polled.top = f"sqlite:///{file_of(tmp_path).name}", {"state": "state"}
    polled.configuration.write_text(toml(polled.document()))
    done = subprocess.run(
        [_COMMAND, "poll", "--once", "-c", polled.configuration],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 3, done.stderr
    assert "the row with key 6 of table 't'" in done.stderr
    told = verb(polled.configuration, "status", folder=tmp_path)
    assert told.returncode == 3
    assert "raise max.message.bytes" in told.stdout


def test_a_database_that_is_away_is_said_once_and_a_stop_ends_at_once(
    polled: Polled,
) -> None:
    polled.dsn = f"postgresql+psycopg://me:sEcReT@127.0.0.1:{free_port()}/shop"
    polled.start().until("trying again")
    wait_until(lambda: status(polled).state == "waiting", 10, "it is told")
    found = status(polled)
    assert found.exit_code == 5
    assert "database shop at 127.0.0.1" in found.problems[0]
    assert polled.terminate(15) == 0
    assert len(polled.said("trying again")) == 1
    assert "sEcReT" not in polled.text


@pytest.mark.fault_long
def test_kafka_that_is_away_at_start_is_said_once_and_a_stop_ends_at_once(
    polled: Polled, tmp_path: Path
) -> None:
    execute(file_of(tmp_path), TABLE + ROWS)
    polled.bootstrap = f"127.0.0.1:{free_port()}"
    polled.start().until("waiting for Kafka")
    wait_until(lambda: status(polled).exit_code == 5, 10, "it is told")
    found = status(polled)
    (problem,) = found.problems
    assert problem.startswith("sink 'rows' waits for Kafka: ")
    assert "Connection refused" in problem
    assert [sink.state for sink in found.sinks] == ["waiting"]
    assert polled.terminate(15) == 0
    assert len(polled.said("waiting for Kafka")) == 1
    assert not polled.said("stopped before")
