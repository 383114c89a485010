"""One process a state folder."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from walstream.errors import ConfigError, PermissionLacking, Transient
from walstream.state.lock import FolderLock, holder
from walstream.telemetry import runtime

NOBODY = 65534
HOLD = """
import pathlib, sys
from walstream.state.lock import FolderLock, holder
lock = FolderLock(pathlib.Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
sys.stdin.read()
"""
FORK = """
import os, pathlib, sys
from walstream.state.lock import FolderLock
lock = FolderLock(pathlib.Path(sys.argv[1]))
lock.acquire()
for _ in range(2):
    if not os.fork():
        os.write(1, b"%d\\n" % os.getpid())  # at once: there is another
        sys.stdin.read(1)
        os._exit(0)
sys.stdin.readline()
"""


def test_second_opener_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    first = FolderLock(tmp_path)
    first.acquire()
    with pytest.raises(ConfigError, match=f"in use by process {os.getpid()}"):
        FolderLock(tmp_path).acquire(wait_s=0)
    first.release()


def test_released_folder_can_be_locked_again(tmp_path: Path) -> None:
    for _ in range(2):
        lock = FolderLock(tmp_path)
        lock.acquire(wait_s=0)
        lock.release()
        lock.release()


def test_folder_is_made_for_this_user_alone(tmp_path: Path) -> None:
    lock = FolderLock(tmp_path / "state" / "app")
    lock.acquire()
    assert (tmp_path / "state" / "app").stat().st_mode & 0o777 == 0o700
    lock.release()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can")
@pytest.mark.parametrize("before", [None, 0o644])
def test_no_other_user_holds_the_lock_of_an_open_folder(
    before: int | None,
) -> None:
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        folder.chmod(0o755)
        if before is not None:  # an older walstream made it
            (folder / "lock").touch()
            (folder / "lock").chmod(before)
        lock = FolderLock(folder)
        lock.acquire()
        lock.release()
        os.seteuid(NOBODY)
        try:
            with pytest.raises(PermissionError):
                (folder / "lock").open("r")
            with pytest.raises(PermissionLacking):
                holder(folder)
        finally:
            os.seteuid(0)


def test_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(ConfigError, match=f"process {holder.pid}"):
            FolderLock(tmp_path).acquire(wait_s=0)
        holder.kill()
        lock = FolderLock(tmp_path)
        lock.acquire(wait_s=10)
        lock.release()


def test_children_that_outlive_a_killed_process_do_not_hold_its_lock(
    tmp_path: Path,
) -> None:
    """A handler may fork, as a pool of processes does; they never end then."""
    with subprocess.Popen(
        [sys.executable, "-c", FORK, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        ending, child = (int(process.stdout.readline()) for _ in range(2))
        os.kill(ending, signal.SIGKILL)  # its end leaves the parent's lock
        with pytest.raises(ConfigError, match=f"by process {process.pid}"):
            FolderLock(tmp_path).acquire(wait_s=0)
        process.kill()
        process.wait()
        try:
            os.kill(child, 0)  # it is there
            lock = FolderLock(tmp_path)
            lock.acquire(wait_s=0)
            lock.release()
        finally:
            os.kill(child, signal.SIGKILL)


@pytest.mark.parametrize("ends", [True, False])
def test_what_an_ended_process_left_is_waited_for_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    """As a child whose program did not let go, or one of another container."""
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    file = os.open(tmp_path / "lock", os.O_RDWR | os.O_CREAT)
    os.write(file, f"{process.pid:<10}".encode())
    fcntl.flock(file, fcntl.LOCK_EX)
    now = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if ends and now > 20:
            fcntl.flock(file, fcntl.LOCK_UN)

    monkeypatch.setattr(runtime, "monotonic", lambda: now)
    monkeypatch.setattr(runtime, "sleep", sleep)
    lock = FolderLock(tmp_path)
    if ends:
        lock.acquire()
        lock.release()
    else:
        named = f"not by process {process.pid}, which took it and has ended"
        with pytest.raises(ConfigError, match=named) as raised:
            lock.acquire()
        assert str(tmp_path / "lock") in raised.value.hint
    os.close(file)


def test_a_folder_that_cannot_be_made_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Not a directory") as refused:
        FolderLock(tmp_path / "file" / "state").acquire()
    assert "`state`" in refused.value.hint


def test_what_may_pass_is_waited_for_and_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("walstream.pipeline.backoff.Backoff.next", lambda _: 0.0)
    tries: list[int] = []
    acquire = FolderLock.acquire

    def failing(lock: FolderLock, wait_s: float = 0.0) -> None:
        tries.append(1)
        if len(tries) < 4:
            raise Transient("no space left", hint="free some")
        acquire(lock, wait_s)

    monkeypatch.setattr(FolderLock, "acquire", failing)
    with capture_logs() as logs:
        lock = FolderLock(tmp_path)
        lock.acquire_patiently()
    assert holder(tmp_path) == str(os.getpid())
    lock.release()
    assert [one["error"] for one in logs] == ["no space left"]
