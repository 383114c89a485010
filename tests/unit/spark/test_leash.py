"""A task ends with its driver, and its lock is shared by those that run."""

import errno
import fcntl
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import asdict
from pathlib import Path

import pytest

from walstream.errors import Transient
from walstream.pipeline.shutdown import Stop, Waker
from walstream.spark.leash import Leash, await_orphans

_WORN = """
import os, sys
from walstream.spark.leash import Leash
with Leash(**eval(sys.argv[1])).worn():
    print("worn", os.getcwd(), flush=True)
    sys.stdin.read()
"""


def wear(leash: Leash) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", _WORN, repr(asdict(leash))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd="/",  # as Spark runs them
    )


def held_by_others(lock: Path) -> bool:
    with lock.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_the_lock_is_shared_while_tasks_run(tmp_path: Path) -> None:
    lock = tmp_path / "spark.lock"
    tasks = [wear(Leash.of_this_process(lock)) for _ in range(2)]
    for task in tasks:
        assert task.stdout is not None
        assert task.stdout.readline().startswith("worn")
    assert held_by_others(lock)
    tasks[0].communicate()
    assert held_by_others(lock)
    tasks[1].communicate()
    assert not held_by_others(lock)


def test_files_are_named_as_seen_from_where_the_driver_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    task = wear(Leash.of_this_process(Path("spark.lock")))
    assert task.communicate()[0] == f"worn {tmp_path}\n"
    # who can read it can hold it, and a backfill waits for who does
    assert (tmp_path / "spark.lock").stat().st_mode & 0o777 == 0o600


def test_a_lock_that_cannot_be_made_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    lock = tmp_path / "spark.lock"
    lock.touch()
    with monkeypatch.context() as patched:
        patched.setattr("os.open", refuse)
        with pytest.raises(Transient, match="no space left"):
            await_orphans(lock, Stop(Waker(), 1))
    assert await_orphans(lock, Stop(Waker(), 1))


def test_a_next_order_waits_for_tasks_until_a_stop(tmp_path: Path) -> None:
    lock, stop = tmp_path / "spark.lock", Stop(Waker(), 1)
    assert await_orphans(lock, stop)
    tasks = [wear(Leash.of_this_process(lock)) for _ in range(2)]
    for task in tasks:
        assert task.stdout is not None
        assert task.stdout.readline().startswith("worn")
    with ThreadPoolExecutor(2) as threads:
        waits = threads.submit(await_orphans, lock, stop)
        tasks[0].communicate()
        assert not wait([waits], 0.2).done
        tasks[1].communicate()
        assert waits.result(30)
        with lock.open("a") as held:
            fcntl.flock(held, fcntl.LOCK_SH)
            waits = threads.submit(await_orphans, lock, stop)
            stop.request()
            assert not waits.result(30)


def test_nothing_begins_once_the_driver_is_gone(tmp_path: Path) -> None:
    driver = subprocess.Popen(["sleep", "60"])
    text = Path(f"/proc/{driver.pid}/stat").read_text()
    leash = Leash(driver.pid, text.rpartition(")")[2].split()[19], str(tmp_path / "l"))
    leash.check()
    driver.kill()
    os.waitid(os.P_PID, driver.pid, os.WEXITED | os.WNOWAIT)
    with pytest.raises(Transient):  # a zombie, too
        leash.check()
    driver.wait()
    with pytest.raises(Transient):
        leash.check()
    task = wear(leash)
    assert task.communicate()[0] == ""
    assert task.returncode == 1


def test_another_process_of_that_number_is_not_the_driver() -> None:
    mine = Leash.of_this_process()
    mine.check()
    with pytest.raises(Transient):
        Leash(mine.pid, "1").check()
