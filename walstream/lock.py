"""Exclusive use of a folder: two instances on one state would lose changes."""

import fcntl
import os
import time
from pathlib import Path
from typing import IO, Final

from walstream.errors import ConfigError, PermissionLacking, Transient

LOCK_WAIT_S: Final = 3.0  # a killed predecessor's kernel may still be tidying up
_LOOK_EVERY_S: Final = 0.05


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


def unwritable(folder: Path, reason: str) -> Transient:
    """Make the error of a folder in which nothing can be kept."""
    return Transient(
        f"state folder {folder}: {reason}",
        hint="make it writable for this user, with free space",
    )


class FolderLock:
    """Exclusive use of a folder, held until close or the process's end."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file: IO[str] | None = None

    def acquire(self, wait_s: float = LOCK_WAIT_S) -> None:
        """Take the lock, or raise ConfigError that names the holder."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            file = (self._folder / "lock").open("a+")
        except OSError as error:
            raise unwritable(self._folder, error.strerror or str(error)) from error
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    file.seek(0)
                    holder = file.read().strip() or "unknown"
                    file.close()
                    raise ConfigError(
                        f"the state folder {self._folder} is in use by process"
                        f" {holder}",
                        hint="stop that one first, or give this one its own `state`",
                    ) from None
                time.sleep(_LOOK_EVERY_S)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self._file = file

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
