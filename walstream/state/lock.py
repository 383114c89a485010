"""Exclusive use of a folder: two instances on one state would lose changes."""

import contextlib
import fcntl
import os
from pathlib import Path
from typing import Final

import structlog

from walstream.errors import ConfigError, PermissionLacking, Transient
from walstream.pipeline.backoff import Backoff
from walstream.state import folder_errors
from walstream.telemetry import runtime
from walstream.telemetry.fields import ERROR, HINT

LOCK_WAIT_S: Final = 3.0  # a killed predecessor's kernel may still be tidying up
_LEFT_WAIT: Final = 10  # times that, where who holds it has ended: a child may follow
_LOOK_EVERY_S: Final = 0.05
_log = structlog.get_logger()
_open: Final[set["FolderLock"]] = set()
_WIDTH: Final = 10  # of the holder's number: the next one's takes the same room


def holder(folder: Path) -> str | None:
    """Name the process that uses a folder; None: nobody does. Changes nothing."""
    try:
        with (folder / "lock").open("r") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return file.read().strip() or "unknown"
    except FileNotFoundError:
        pass
    except PermissionError as error:
        raise PermissionLacking(
            f"the state folder {folder} cannot be read by this user",
            hint="run this as the user that walstream runs as",
        ) from error
    return None


class FolderLock:
    """Exclusive use of a folder, held until close or the process's end.

    A child that a plugin forks does not hold it: it may outlive this process.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: int | None = None

    def acquire(self, wait_s: float = LOCK_WAIT_S) -> None:
        """Take the lock, or raise ConfigError that names the holder."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
            # one of an older walstream: whoever could read it could hold it, too
            with contextlib.suppress(PermissionError):
                os.fchmod(file, 0o600)
        except OSError as error:
            raise folder_errors.refusal(self._folder, error) from error
        self._file = file
        _open.add(self)
        began = runtime.monotonic()
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                holder = os.pread(file, 99, 0).decode().strip() or "unknown"
                left = _has_ended(holder)
                limit_s = wait_s * _LEFT_WAIT if left else wait_s
                if runtime.monotonic() - began > limit_s:
                    self.release()
                    raise self._refusal(holder, left=left) from None
                runtime.sleep(_LOOK_EVERY_S)
        with contextlib.suppress(OSError):  # no room: it is held, by nobody knows whom
            os.pwrite(file, f"{os.getpid():<{_WIDTH}}".encode(), 0)

    def _refusal(self, holder: str, *, left: bool) -> ConfigError:
        if left:
            return ConfigError(
                f"the state folder {self._folder} is in use, but not by process"
                f" {holder}, which took it and has ended",
                hint="a child that it left behind may hold it, or walstream runs in"
                f" another container: end who has {self._folder / 'lock'} open (fuser"
                " names it), then: walstream run",
            )
        return ConfigError(
            f"the state folder {self._folder} is in use by process {holder}",
            hint="stop that one first, or give this one its own `state`",
        )

    def acquire_patiently(self) -> None:
        """Take it; wait where what is wrong may pass, as a full disk does."""
        backoff, said = Backoff(0.5, 5.0), ""
        while True:
            try:
                self.acquire()
            except Transient as error:
                if said != (said := str(error.args[0])):
                    _log.warning("trying again", **{ERROR: said, HINT: error.hint})
                runtime.sleep(backoff.next())
            else:
                return

    def release(self) -> None:
        _open.discard(self)
        if self._file is not None:
            os.close(self._file)
            self._file = None


def _has_ended(holder: str) -> bool:
    """Return whether a process, by its number, is not there."""
    try:
        os.kill(int(holder), 0)
    except ProcessLookupError:
        return True
    except (ValueError, OverflowError, PermissionError):  # no number; another user's
        pass
    return False


def _let_go() -> None:
    """Close in a child what it shares: a lock is held as long as one has it open.

    To unlock would be to unlock the parent's.
    """
    for lock in tuple(_open):
        lock.release()


os.register_at_fork(after_in_child=_let_go)
