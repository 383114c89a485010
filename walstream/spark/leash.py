"""Leash of a task on this machine: ends it when it is no longer wanted.

The kernel kills a Python worker whose daemon dies; the daemon ends with the JVM, and
the JVM with the driver. Until then a task looks for the driver itself, and for a file
that stands for its order: Spark may take seconds to end a task that was cancelled. Its
lock is shared by all tasks: who holds it alone knows that no orphan sends rows.
"""

import fcntl
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Final, Self

import structlog

from walstream.errors import Transient
from walstream.pipeline.shutdown import Stop
from walstream.spark.parent_death import ask_for_its_signal
from walstream.state import folder_errors

_LOOK_EVERY_S: Final = 0.05
_START_FIELD: Final = 19  # of /proc/PID/stat, counted behind the command's name
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Leash:
    """Ties tasks to the process that ordered them; picklable."""

    pid: int
    started: str  # tells it from a later process of the same number
    lock: str = ""  # a file; "" is none
    order: str = ""  # a file that is there until the order ends; "" is none
    folder: str = ""  # in which the driver runs; "" is not known

    @classmethod
    def of_this_process(cls, lock: Path | None = None) -> Self:
        """Tie tasks to this process."""
        pid = os.getpid()
        return cls(pid, _started(pid), str(lock) if lock else "", folder=_folder())

    @classmethod
    @contextmanager
    def of_an_order(cls, lock: Path) -> "Iterator[Leash]":
        """Tie tasks to this process, and to the block that it is used in."""
        with tempfile.NamedTemporaryFile(prefix="walstream-order-") as file:
            yield replace(cls.of_this_process(lock), order=file.name)

    def check(self) -> None:
        """Raise when the driver is gone, or the order ended."""
        if _started(self.pid) != self.started:
            raise Transient("the driver is gone: its tasks stop")
        if self.order and not Path(self.order).exists():
            raise Transient("the job ended: its tasks stop")

    @contextmanager
    def worn(self) -> Iterator[None]:
        """Let the task run as long as the driver lives, and show that it runs."""
        ask_for_its_signal()
        if self.folder:  # files of the configuration may be named as seen from there
            os.chdir(self.folder)
        if not self.lock:
            self.check()
            yield
            return
        with _open(self.lock) as file:
            fcntl.flock(file, fcntl.LOCK_SH)
            self.check()  # after the lock: who holds it alone has seen the driver gone
            yield


def await_orphans(lock: Path, stop: Stop) -> bool:
    """Wait until no task holds this file; False: a stop came."""
    if not lock.exists():
        return True
    with _open(lock) as file:
        said = False
        while not stop.requested:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not said:
                    _log.info("waiting for tasks of an earlier job to end")
                    said = True
                stop.event.wait(_LOOK_EVERY_S)
            else:
                return True
    return False


def _open(lock: Path | str) -> IO[str]:
    """Open for this user alone: who can read it can hold it, too."""
    try:
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o600)
    except OSError as error:
        raise folder_errors.refusal(Path(lock).parent, error) from error
    return os.fdopen(file, "a", encoding="utf-8")


def _folder() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:  # it was deleted
        return ""


def _started(pid: int) -> str:
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in "ZX" else fields[_START_FIELD]
