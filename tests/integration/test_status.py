"""`walstream status`: true with an instance, and without one."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import Database, PostgresServer
from tests.support.fixtures.walstream import Runs, streamed
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import verb
from tests.support.programs.walstream import Walstream
from tests.support.project.own_coverage import ROOT

pytestmark = pytest.mark.same_on_15

_TABLE = "CREATE TABLE t (id serial PRIMARY KEY, v text)"
_INSERT = "INSERT INTO t (v) SELECT 'x' FROM generate_series(1, 10)"
_WAL = "SELECT pg_logical_emit_message(false, 'test', repeat('x', 1000000))"
_COMMAND = Path(sys.executable).with_name("walstream")


def command(
    walstream: Walstream, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    return verb(walstream.configuration, *arguments)


def status(walstream: Walstream) -> dict[str, Any]:
    done = command(walstream, "status", "--json")
    found: dict[str, Any] = json.loads(done.stdout)
    assert done.returncode == found["exit_code"], done.stderr
    return found


def source(walstream: Walstream) -> dict[str, Any]:
    (found,) = status(walstream)["sources"]
    return dict(found)


def test_before_while_and_after_a_run(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        new = runs(database.dsn)
        new.configuration.write_text(
            walstream.configuration.read_text().replace(
                str(walstream.folder / "state"), str(new.folder / "state")
            )
        )
        assert source(new)["state"] == "new"
        database.execute(_INSERT)
        reader.count(10)
        found = status(walstream)

        def caught_up() -> bool:
            found.update(status(walstream))
            (app,) = found["sources"]
            # the report of before the rows says so, too
            said = app["ops"], app["lag_s"], app["state"]
            return said == (10, 0, "streaming")

        wait_until(caught_up, 30, "it has caught up")
        assert found["pid"] == walstream.pid
        (app,) = found["sources"]
        assert app["ops"] == app["delivered"] == 10
        assert app["problems"] == []
        assert app["slot"]["name"] == walstream.slot
        assert [sink["state"] for sink in app["sinks"]] == ["delivering"]
        assert walstream.terminate() == 0
    found = status(walstream)
    assert found["pid"] is None
    (app,) = found["sources"]
    assert (app["state"], app["exit_code"]) == ("stopped", 0)
    assert app["delivered"] == 10
    assert app["resume"]
    database.execute(_INSERT)
    assert source(walstream)["lag_bytes"] > app["lag_bytes"]


def test_what_stopped_a_source_is_said_with_its_repair(
    database: Database, runs: Runs
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        up = command(walstream, "status").stdout.splitlines()
        assert re.fullmatch(rf"running, pid {walstream.pid}, up \d+(\.\d)? s", up[0])
        assert "lag (time)  lag (WAL)" in up[1]
        assert walstream.terminate() == 0
    database.fetch("SELECT pg_drop_replication_slot(%s)", walstream.slot)
    walstream.start().ends_with(3, "is gone")
    done = command(walstream, "status")
    assert done.returncode == 3
    assert done.stdout.startswith("not running on this state folder\n")
    assert "?" not in done.stdout
    assert "failed" in done.stdout
    repair = f"$ walstream positions reset app -c {walstream.configuration}"
    assert repair in done.stdout
    assert max(map(len, done.stdout.replace(repair, "").splitlines())) <= 100
    assert "\x1b" not in done.stdout


def test_a_slot_that_holds_too_much_is_said_by_log_and_status(
    newest_postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    options = {"retain": "1GiB", "alarm_retained_wal": "4MiB"}
    with streamed(
        newest_postgres, kafka, tmp_path, before=_TABLE, source=options
    ) as stream:
        well = lambda: source(stream.walstream)["problems"] == []  # noqa: E731
        wait_until(well, 30, "all is well")
        for _ in range(8):
            stream.database.fetch(_WAL)
        stream.walstream.until("more than alarm_retained_wal (4.0 MiB)")
        (problem,) = source(stream.walstream)["problems"]
        assert "alarm_retained_wal" in problem
        assert stream.walstream.terminate() == 0
        (problem,) = source(stream.walstream)["problems"]
        assert "alarm_retained_wal" in problem


def test_a_worker_that_dies_is_said(
    newest_postgres: PostgresServer, kafka: KafkaServer, tmp_path: Path
) -> None:
    with streamed(newest_postgres, kafka, tmp_path, before=_TABLE) as stream:
        walstream = stream.walstream
        first = walstream.worker_pid()
        for _ in range(8):  # each wait is longer than the one before
            killed = walstream.worker_pid()
            os.kill(killed, signal.SIGKILL)
            dead = lambda: killed not in walstream.workers()  # noqa: B023, E731
            wait_until(dead, 10, "it is dead")  # the next one may run already
            found = source(walstream)
            if found["problems"]:
                break
        assert "its worker died with exit code -9" in found["problems"][0]
        assert (found["state"], found["exit_code"]) == ("waiting", 5)
        wait_until(lambda: source(walstream)["state"] == "streaming", 90, "it streams")
        assert walstream.worker_pid() != first


def test_a_watch_ends_with_ctrl_c_and_prints_what_it_saw(
    database: Database, runs: Runs
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        assert walstream.terminate() == 0
    configuration = str(walstream.configuration)
    watch = [str(_COMMAND), "status", "-c", configuration, "--watch", "--json"]
    with subprocess.Popen(watch, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert lines[0]["at"] < lines[1]["at"]


def test_what_is_printed_fits_its_published_schema(
    database: Database, runs: Runs
) -> None:
    published = json.loads((ROOT / "docs/schemas/status.json").read_text())
    shown = verb(None, "status", "--json-schema")
    assert json.loads(shown.stdout) == published
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        jsonschema.validate(status(walstream), published)
    held = "SELECT FROM pg_replication_slots WHERE slot_name = %s AND active"
    wait_until(lambda: not database.fetch(held, walstream.slot), 10, "it is free")
    database.fetch("SELECT pg_drop_replication_slot(%s)", walstream.slot)
    walstream.start().ends_with(3, "is gone")
    jsonschema.validate(status(walstream), published)
