"""The system user as whom root runs a server that had better not be root."""

import os
import pwd
import shutil
import stat
import subprocess
from dataclasses import dataclass
from pathlib import Path

from walstream.errors import ConfigError

_NAME = "walstream-demo"
_FALLBACK = "nobody"


@dataclass(frozen=True, slots=True)
class Account:
    name: str
    uid: int
    gid: int

    @property
    def ids(self) -> tuple[int, int]:
        return self.uid, self.gid

    def may_use(self, path: Path) -> bool:
        """Whether its mode bits, and those of each folder above, let us in."""
        resolved = path.resolve()
        return all(self._may_pass(one) for one in (resolved, *resolved.parents))

    def _may_pass(self, path: Path) -> bool:
        status = path.stat()
        if status.st_uid == self.uid:
            return bool(status.st_mode & stat.S_IXUSR)
        if status.st_gid == self.gid:
            return bool(status.st_mode & stat.S_IXGRP)
        return bool(status.st_mode & stat.S_IXOTH)

    def own(self, folder: Path) -> None:
        """Make it own the folder with all that is in it."""
        os.chown(folder, *self.ids)
        for parent, folders, files in os.walk(folder):
            for name in (*folders, *files):
                os.chown(Path(parent, name), *self.ids, follow_symlinks=False)


def server_account() -> Account | None:
    """None unless we are root: then the server runs as we do."""
    return _unprivileged() if os.geteuid() == 0 else None


def _unprivileged() -> Account:
    found = _look_up(_NAME) or _create() or _look_up(_FALLBACK)
    if found is None:
        raise ConfigError(
            "the server may not run as root, and no other account is available",
            hint=f"useradd --system {_NAME}",
        )
    return found


def _create() -> Account | None:
    tool = shutil.which("useradd", path=f"{os.defpath}:/usr/sbin:/sbin")
    if tool is None:
        return None
    options = ["--system", "--no-create-home", "--shell", "/usr/sbin/nologin"]
    # its answer does not matter: another process may have been faster
    subprocess.run([tool, *options, _NAME], check=False, capture_output=True)  # noqa: S603 - no input from outside
    return _look_up(_NAME)


def _look_up(name: str) -> Account | None:
    try:
        entry = pwd.getpwnam(name)
    except KeyError:
        return None
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)
