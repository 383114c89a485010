"""Small disks that are really full: a tmpfs each, where this user may mount one."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

_BLOCK: Final = 4096
_FILLING: Final = "filling"  # a file


@dataclass(frozen=True)
class Disk:
    """One that is mounted at `folder`."""

    folder: Path

    def fill(self, left: int = 0) -> None:
        """Take all blocks but so many."""
        self.free()
        with (self.folder / _FILLING).open("wb", buffering=0) as file:
            there = os.statvfs(self.folder).f_bavail
            for _ in range(there - left):
                file.write(b"x" * _BLOCK)
        assert os.statvfs(self.folder).f_bavail == left

    def free(self) -> None:
        (self.folder / _FILLING).unlink(missing_ok=True)

    def unmount(self) -> None:
        if self.folder.is_mount():
            # lazily: a process that is being killed may still be in it
            subprocess.run(["umount", "--lazy", self.folder], check=True)


@contextmanager
def small_disk(folder: Path, size: int = 1 << 20) -> Iterator[Disk]:
    """Mount one there; skip where this user may not."""
    folder.mkdir(parents=True, exist_ok=True)
    command = [
        "mount",
        "-t",
        "tmpfs",
        "-o",
        f"size={size},mode=700",
        "tmpfs",
        str(folder),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no disk of its own can be mounted: {done.stderr.strip()}")
    disk = Disk(folder)
    try:
        yield disk
    finally:
        disk.unmount()
