"""`walstream status`: true with an instance, and without one."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.fix_postgres import Database
from tests.fix_walstream import Runs
from tests.reading import Reader
from tests.running import Walstream
from tests.waiting import wait_until

_TABLE = "CREATE TABLE t (id serial PRIMARY KEY, v text)"
_INSERT = "INSERT INTO t (v) SELECT 'x' FROM generate_series(1, 10)"
_COMMAND = Path(sys.executable).with_name("walstream")


def command(
    walstream: Walstream, *arguments: str
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [_COMMAND, *arguments, "-c", walstream.configuration],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


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
        wait_until(lambda: source(walstream)["lag_s"] == 0, 15, "it has caught up")
        found = status(walstream)
        assert found["pid"] == walstream.pid
        (app,) = found["sources"]
        assert app["state"] == "streaming"
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
        assert walstream.terminate() == 0
    database.fetch("SELECT pg_drop_replication_slot(%s)", walstream.slot)
    walstream.start().ends_with(3, "is gone")
    done = command(walstream, "status")
    assert done.returncode == 3
    assert "failed" in done.stdout
    repair = f"$ walstream positions reset app -c {walstream.configuration}"
    assert repair in done.stdout
    assert max(map(len, done.stdout.replace(repair, "").splitlines())) <= 100
    assert "\x1b" not in done.stdout
