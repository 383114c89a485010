"""Creation of an LMDB file: complete, or not at all.

On a full disk it would leave a file that passes for damaged, or end the process.
"""

import contextlib
import os
import shutil
from pathlib import Path
from typing import Final

import lmdb

_DATA: Final = "data.mdb"
_LOCK: Final = "lock.mdb"
_LOCK_SIZE: Final = 8192  # of 126 readers, as LMDB makes it
_UNFINISHED: Final = "unfinished"  # a folder in the source's


def make(folder: Path, map_size: int) -> None:
    """Make a new file beside and then move it in, unless there is one."""
    file = folder / _DATA
    if file.exists() and file.stat().st_size:
        return
    unfinished = folder / _UNFINISHED
    shutil.rmtree(unfinished, ignore_errors=True)  # what a crash left
    try:
        unfinished.mkdir(mode=0o700)
        # without a lock: nobody else knows of it
        lmdb.open(str(unfinished), map_size=map_size, mode=0o600, lock=False).close()
        (unfinished / _DATA).replace(file)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def reserve(folder: Path) -> None:
    """Take the room of the readers' table, which LMDB maps and then writes.

    A page of it that the disk has no room for would be the end by SIGBUS.
    """
    with contextlib.suppress(PermissionError):  # LMDB says it itself
        file = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(file, 0, _LOCK_SIZE)
        finally:
            os.close(file)
