"""Errors of a state folder: no space, no right, no folder. None of them is damage."""

import errno
import os
import shutil
from pathlib import Path
from typing import Final

from walstream.errors import ConfigError, PermissionLacking, Transient, WalstreamError

NEEDED: Final = 1 << 20  # bytes: a source's documents at its start, many times over
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_RIGHTS: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})
_WRONG: Final = frozenset({errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG})
_CRUMBS: Final = 64 << 10  # bytes: less than one commit may take


def refusal(folder: Path, error: Exception) -> WalstreamError:
    """Return why nothing can be written there, and who has to do something about it."""
    number = error.errno if isinstance(error, OSError) else None
    if is_full(folder, error):
        return no_room(folder)
    what = f"state folder {folder}: {_said(error)}"
    if number in _RIGHTS:
        return PermissionLacking(what, hint="make it writable for this user")
    if number in _WRONG:
        return ConfigError(what, hint="correct `state`: it has to be a folder")
    return Transient(what, hint="make it writable for this user, with free space")


def _said(error: Exception) -> str:
    if not isinstance(error, OSError):
        return str(error)
    return error.strerror or os.strerror(error.errno or 0)


def is_full(folder: Path, error: Exception) -> bool:
    """Return whether an error means that there is no room."""
    if isinstance(error, OSError):
        return error.errno in _FULL
    said = str(error)  # of LMDB, which passes no number on
    if any(os.strerror(number) in said for number in _FULL):
        return True
    # what was written in part is an error of the disk to LMDB
    return os.strerror(errno.EIO) in said and free(folder) < _CRUMBS


def no_room(folder: Path) -> Transient:
    """Make the error of a disk, or a quota, that is full."""
    left = free(folder) >> 20  # in small units each try would say another
    return Transient(
        f"state folder {folder}: no space left on device ({left} MiB free), and"
        " nothing is lost",
        hint=f"free at least {NEEDED >> 20} MiB there: walstream confirms nothing "
        "meanwhile and continues by itself",
    )


def free(folder: Path) -> int:
    """Measure what this user may still write there, in bytes."""
    return shutil.disk_usage(existing(folder)).free


def existing(folder: Path) -> Path:
    """Return the nearest existing part of the path."""
    absolute = folder.absolute()
    return next(path for path in (absolute, *absolute.parents) if path.exists())
