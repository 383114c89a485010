"""`walstream positions reset` repairs what stops a source for good."""

import subprocess
import sys
from pathlib import Path

from tests.fix_postgres import Database
from tests.fix_walstream import Runs
from tests.reading import Reader, Record
from tests.running import Walstream
from tests.waiting import wait_until

_TABLE = "CREATE TABLE t (id serial PRIMARY KEY)"
_INSERT = "INSERT INTO t DEFAULT VALUES"


def reset(walstream: Walstream, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = Path(sys.executable).with_name("walstream")
    return subprocess.run(
        [command, "positions", "reset", *arguments, "-c", walstream.configuration],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )


def epoch(record: Record) -> int:
    ((name, value),) = record.headers
    assert name == "walstream-source"
    return int(value.decode().rsplit("/", 1)[1])


def test_after_a_lost_slot_the_printed_repair_makes_it_stream(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        database.execute(_INSERT)
        reader.count(1)
        assert walstream.terminate() == 0
    database.fetch("SELECT pg_drop_replication_slot(%s)", walstream.slot)
    walstream.start().ends_with(3, "is gone", "walstream positions reset app")
    done = reset(walstream, "app", "--yes")
    assert done.returncode == 0, done.stderr
    assert "begins anew" in done.stdout
    with walstream:
        database.execute(_INSERT)
        first, second = reader.count(2)
        assert epoch(first) == epoch(second) == 0  # the same history: LSNs compare
        assert walstream.terminate() == 0


def test_after_damage_the_epoch_is_another(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        assert walstream.terminate() == 0
    (walstream.state / "data.mdb").write_bytes(b"\xff" * 20_000)
    walstream.start().ends_with(3, "damaged", "walstream positions reset app")
    assert reset(walstream, "app", "--yes").returncode == 0
    with walstream:
        database.execute(_INSERT)
        (record,) = reader.count(1)
        assert epoch(record) > 1_000_000
        assert walstream.terminate() == 0


def test_nothing_is_reset_or_stopped_without_consent(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        asked = reset(walstream, "app")
        assert asked.returncode == 2
        assert "--yes" in asked.stderr
        unknown = reset(walstream, "nope", "--yes")
        assert unknown.returncode == 2
        assert "configured are: app" in unknown.stderr
        database.execute(_INSERT)
        reader.count(1)
        assert walstream.terminate() == 0
    assert len(walstream.said("streaming")) == 1


def test_a_running_instance_begins_anew(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        database.execute(_INSERT)
        reader.count(1)
        done = reset(walstream, "app", "--yes")
        assert done.returncode == 0, done.stderr
        assert "is reset, and begins anew" in done.stdout
        wait_until(lambda: len(walstream.said("slot created")) == 2, 30, "a new slot")
        database.execute(_INSERT)
        reader.count(2)
        assert walstream.terminate() == 0
