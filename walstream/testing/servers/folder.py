"""A server's folder, which goes away with its owner even if the owner is killed.

The owner holds a lock on it as long as it lives; whoever makes the next folder sweeps
those whose lock is free.
"""

import fcntl
import os
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from walstream.testing.servers.account import Account

_PREFIX = "walstream-local-"
_LOCK = "owner.lock"
_YOUNG_S = 60.0  # may not be locked yet


class WorkFolder:
    """Temporary unless a folder is given: that one stays, with all that is in it."""

    def __init__(self, kind: str, given: Path | None, account: Account | None) -> None:
        self._lock: int | None = None
        if given is None:
            parent = _parent(account)
            _sweep(parent)
            self.path = Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{kind}-", dir=parent))
            self._lock = os.open(self.path / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
        else:
            given.mkdir(parents=True, exist_ok=True)
            self.path = given.resolve()
        if account is not None:
            os.chown(self.path, *account.ids)

    def delete(self) -> None:
        if self._lock is None:
            return
        # a server that was just killed may still write its last file
        shutil.rmtree(self.path, ignore_errors=True)
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)
        self._lock = None


def _parent(account: Account | None) -> Path:
    usual = Path(tempfile.gettempdir())
    if account is None or account.may_use(usual):
        return usual
    return next(
        (
            folder
            for folder in map(Path, ("/tmp", "/var/tmp"))  # noqa: S108 - mkdtemp makes a private one in it
            if folder.is_dir() and account.may_use(folder)
        ),
        usual,
    )


def _sweep(parent: Path) -> None:
    for folder in parent.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # another user's, or gone by now
            if time.time() - folder.lstat().st_mtime > _YOUNG_S:
                _delete_unless_owned(folder)


def _delete_unless_owned(folder: Path) -> None:
    # neither follows a link nor waits for a pipe that someone laid there
    lock = os.open(folder / _LOCK, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
