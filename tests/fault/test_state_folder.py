"""A state folder that is full, damaged or old: never believed, never a loss."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.deadline import wait_until
from tests.support.fixtures.postgres import Database, PostgresServer, temporary_database
from tests.support.fixtures.walstream import Runs
from tests.support.oracles.topic_reader import Reader
from tests.support.programs.verb import verb
from tests.support.selection import shortened
from tests.support.servers.small_disk import small_disk

pytestmark = pytest.mark.same_on_15

_TABLE = "CREATE TABLE t (id serial PRIMARY KEY)"
_INSERT = "INSERT INTO t DEFAULT VALUES"
_CONFIRMED_LSN = (
    "SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = %s"
)


@contextmanager
def failing_writes(pid: int, report: Path) -> Iterator[None]:
    """Let every write and sync of LMDB fail as on a full disk; prove that one did."""
    strace = shutil.which("strace")
    if strace is None:
        pytest.skip("no strace: apt-get install strace")
    calls = "pwrite64,pwritev,fdatasync,fsync,msync"
    with subprocess.Popen(
        [
            *(strace, "-f", "-o", report, "-e", f"trace={calls}"),
            *("-e", f"inject={calls}:error=ENOSPC", "-p", str(pid)),
        ],
        stderr=subprocess.DEVNULL,
    ) as process:
        try:
            wait_until(lambda: is_traced(pid), 10, "strace is attached")
            yield
        finally:
            process.terminate()
    assert "INJECTED" in report.read_text()


def is_traced(pid: int) -> bool:
    """Tell whether all threads of a process are."""
    texts = [one.read_text() for one in Path(f"/proc/{pid}/task").glob("*/status")]
    return bool(texts) and not any("\nTracerPid:\t0\n" in text for text in texts)


def test_a_full_disk_pauses_confirmation_until_there_is_space(
    database: Database, runs: Runs, reader: Reader, tmp_path: Path
) -> None:
    database.execute(_TABLE)
    with runs(database.dsn) as walstream:
        database.execute(_INSERT)
        reader.count(1)
        wait_until(lambda: confirmed(database, walstream.slot), 5, "it is confirmed")
        with failing_writes(walstream.worker_pid(), tmp_path / "strace"):
            database.execute(_INSERT)
            reader.count(2)
            walstream.until("positions cannot be stored")
            ((before,),) = database.fetch(_CONFIRMED_LSN, walstream.slot)
            database.execute(_INSERT)
            reader.count(3)
            assert database.fetch(_CONFIRMED_LSN, walstream.slot) == [(before,)]
        walstream.until("positions are stored again")
        wait_until(lambda: confirmed(database, walstream.slot), 10, "it goes on")
        assert walstream.terminate() == 0
        assert reader.count(3)


def test_a_first_start_on_a_full_disk_waits_and_goes_on_by_itself(
    newest_postgres: PostgresServer, runs: Runs, reader: Reader, tmp_path: Path
) -> None:
    with (
        temporary_database(newest_postgres) as database,
        small_disk(tmp_path / "disk") as disk,
    ):
        database.execute(_TABLE)
        walstream = runs(database.dsn, top={"state": str(disk.folder / "state")})
        disk.fill()
        walstream.start().until("no space left on device")
        disk.fill(2)  # 8 KiB: a file of LMDB's begins to fit
        wait_until(lambda: len(walstream.said("trying again")) > 0, 10, "it tries")
        shown = verb(walstream.configuration, "check")
        assert shown.returncode == 5, shown.stdout
        shown_whole = " ".join(shown.stdout.split())
        assert "no space left on device" in shown_whole, shown_whole
        said = walstream.text + shown_whole
        disk.free()
        walstream.streaming()
        database.execute(_INSERT)
        reader.count(1)
        walstream.kill()
        said += walstream.text
        disk.fill()  # a start finds the state whole, and goes on in its own pages
        walstream.start().streaming()
        database.execute(_INSERT)
        reader.until(lambda records: records[-1].new == {"id": "2"})
        disk.free()
        assert walstream.terminate() == 0
        said += walstream.text
        assert "reset" not in said
        assert "damaged" not in said


def confirmed(database: Database, slot: str) -> bool:
    """Tell whether the slot is confirmed up to all that was written."""
    return bool(
        database.fetch(
            "SELECT 1 FROM pg_replication_slots WHERE slot_name = %s"
            " AND confirmed_flush_lsn >= pg_current_wal_lsn() - 1000",
            slot,
        )
    )


def test_an_older_copy_of_the_state_is_noticed(
    database: Database, runs: Runs, reader: Reader, tmp_path: Path
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        assert walstream.terminate() == 0
    shutil.copytree(walstream.state, tmp_path / "copy")
    with walstream:
        for _ in range(5):
            database.execute(_INSERT)
        reader.count(5)
        assert walstream.terminate() == 0
    shutil.rmtree(walstream.state)
    shutil.copytree(tmp_path / "copy", walstream.state)
    walstream.start().ends_with(3, "beyond the position", "positions reset app")


@pytest.mark.parametrize("kept", shortened([0.0, 0.1, 0.5, 0.9], 0.5))
def test_a_truncated_state_is_refused(
    database: Database, runs: Runs, reader: Reader, kept: float
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        database.execute(_INSERT)
        reader.count(1)
        assert walstream.terminate() == 0
    file = walstream.state / "data.mdb"
    os.truncate(file, int(file.stat().st_size * kept))
    walstream.start().ends_with(3)


def test_a_position_with_a_wrong_checksum_is_refused(
    database: Database, runs: Runs, reader: Reader
) -> None:
    database.execute(_TABLE)
    walstream = runs(database.dsn)
    with walstream:
        database.execute(_INSERT)
        reader.count(1)
        assert walstream.terminate() == 0
    file = walstream.state / "data.mdb"
    whole = file.read_bytes()
    assert whole.count(b'{"resume":') > 0
    file.write_bytes(whole.replace(b'{"resume":', b'{"resumf":'))
    walstream.start().ends_with(3, "checksum", "positions reset app")
