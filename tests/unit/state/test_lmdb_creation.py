"""A state on a disk that is really full: never damaged, and never the end."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.small_disk import Disk, small_disk
from walstream.state.store import LmdbStore

WRITES = """
import pathlib, sys
from walstream.errors import Transient
from walstream.state.lock import FolderLock
from walstream.state.store import LmdbStore

folder = pathlib.Path(sys.argv[1])
try:
    lock = FolderLock(folder)
    lock.acquire()
    with LmdbStore(folder / "app") as positions:
        positions.write({"a": list(range(2000))})
except Transient as error:
    assert "no space left" in str(error), error
    sys.exit(5)
"""
LOOKS = """
import pathlib, sys
from walstream.state.store import LmdbStore

with LmdbStore.open_read_only(pathlib.Path(sys.argv[1]) / "app") as positions:
    print(positions and positions.read("a"))
"""


def done(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run it apart: what maps a file on a full disk may die by a signal."""
    return subprocess.run(
        [sys.executable, "-c", script, folder],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk") as made:
        yield made


@pytest.mark.parametrize("left", [0, 1, 2, 3, 4, 5, 9])
def test_a_first_start_with_little_room_waits_for_more(disk: Disk, left: int) -> None:
    folder = disk.folder / "state"
    disk.fill(left)
    for _ in range(2):  # what the first left behind is not damage
        assert done(WRITES, folder).returncode in {5, 0 if left > 6 else 5}
        looked = done(LOOKS, folder)
        assert looked.returncode == 0, looked.stderr
    disk.free()
    again = done(WRITES, folder)
    assert again.returncode == 0, again.stderr
    with LmdbStore(folder / "app") as positions:
        assert positions.read("a") == list(range(2000))
    assert {path.name for path in (folder / "app").iterdir()} == {
        "data.mdb",
        "lock",
        "lock.mdb",
    }


def test_a_state_that_is_there_is_opened_on_a_full_disk(disk: Disk) -> None:
    assert done(WRITES, disk.folder).returncode == 0
    disk.fill()
    assert done(WRITES, disk.folder).returncode == 5
    (disk.folder / "app" / "lock.mdb").unlink()  # as a reset leaves it
    disk.fill()
    assert done(WRITES, disk.folder).returncode == 5
    looked = done(LOOKS, disk.folder)
    assert (looked.returncode, looked.stdout[:7]) == (0, "[0, 1, "), looked.stderr
