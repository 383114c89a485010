"""A damaged file is told from a whole one before LMDB maps it."""

import random
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from walstream.pipeline.ports import Position
from walstream.state.lmdb_check import Broken, check
from walstream.state.store import LmdbStore

PAGE = 4096
# in a process of its own: what gets past the check may end it
OPEN_ALL = """
import sys
from pathlib import Path
from walstream.errors import StateDamaged
from walstream.state.store import LmdbStore

for folder in sorted(Path(sys.argv[1]).iterdir()):
    try:
        with LmdbStore(folder) as positions:
            for name in positions.names(""):
                positions.read(name)
            if position := positions.position():
                positions.store(position)
        print(folder.name, "believed", position.resume if position else 0)
    except StateDamaged:
        print(folder.name, "refused", 0)
"""


def write(folder: Path, seed: int) -> None:
    """Make a state of several sessions, with documents of all sizes."""
    choose = random.Random(seed)  # noqa: S311 - a seeded case
    for _ in range(choose.randint(1, 4)):
        with LmdbStore(folder) as positions:
            for _ in range(choose.randint(1, 12)):
                size = choose.choice((1, 100, 1500, 3000, 9000, 40_000))
                document = None if choose.random() < 0.4 else "x" * size
                positions.write({f"keys/{choose.randrange(40)}": document})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Give a file whose trees are deep enough to have every kind of page."""
    folder = tmp_path_factory.mktemp("whole") / "app"
    with LmdbStore(folder) as positions:
        positions.write({f"keys/{n}": "x" * 200 for n in range(60)})
        positions.write({"large": "x" * 20_000})
        for resume in range(1000, 1020):
            positions.store(Position(resume, 1, 1, "d", "s"))
    return (folder / "data.mdb").read_bytes()


def test_no_file_and_an_empty_one_are_whole(tmp_path: Path) -> None:
    check(tmp_path / "data.mdb")
    (tmp_path / "data.mdb").touch()
    check(tmp_path / "data.mdb")


@pytest.mark.parametrize("seed", range(30))
def test_whatever_lmdb_wrote_is_whole(tmp_path: Path, seed: int) -> None:
    write(tmp_path / "app", seed)
    check(tmp_path / "app" / "data.mdb")


def test_truncation_at_and_beside_every_page_is_refused(
    whole: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "data.mdb"
    sizes = {
        size
        for page in range(len(whole) // PAGE)
        for size in (page * PAGE, page * PAGE + 1, page * PAGE + 100, page * PAGE - 1)
        if 0 < size < len(whole)
    }
    for size in sizes:
        file.write_bytes(whole[:size])
        with pytest.raises(Broken):
            check(file)


@pytest.mark.parametrize("fill", [b"\0", b"\xff"])
def test_overwritten_meta_page_is_refused(
    whole: bytes, tmp_path: Path, fill: bytes
) -> None:
    file = tmp_path / "data.mdb"
    for start in (0, PAGE):
        file.write_bytes(whole[:start] + fill * PAGE + whole[start + PAGE :])
        with pytest.raises(Broken):
            check(file)


def test_page_that_two_branches_name_is_refused(whole: bytes, tmp_path: Path) -> None:
    damaged = bytearray(whole)
    for start in range(2 * PAGE, len(whole), PAGE):
        _, flags, lower = struct.unpack_from("=QxxHH", whole, start)
        if flags == 1 and lower >= 20:  # a branch with two children at least
            first, second = struct.unpack_from("=HH", whole, start + 16)
            child = whole[start + first : start + first + 6]
            damaged[start + second : start + second + 6] = child
    assert damaged != whole
    (tmp_path / "data.mdb").write_bytes(damaged)
    with pytest.raises(Broken, match="named twice"):
        check(tmp_path / "data.mdb")


def test_damage_anywhere_is_refused_or_harmless(whole: bytes, tmp_path: Path) -> None:
    """Nothing crashes, nothing hangs, and a position that is believed was written."""
    choose = random.Random(7)  # noqa: S311 - a seeded case
    pages = len(whole) // PAGE
    for case in range(300):
        damaged = bytearray(whole)
        start = case % pages * PAGE
        match case % 3:
            case 0:
                damaged[start : start + PAGE] = choose.choice((b"\0", b"\xff")) * PAGE
            case 1:
                damaged[start + choose.randrange(160)] ^= 1 << choose.randrange(8)
            case _:
                damaged[start + choose.randrange(PAGE)] ^= 1 << choose.randrange(8)
        folder = tmp_path / f"{case:03}"
        folder.mkdir()
        (folder / "data.mdb").write_bytes(damaged)
    command = [sys.executable, "-c", OPEN_ALL, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, check=False, timeout=120)
    assert answer.returncode == 0, (answer.stdout[-60:], answer.stderr[-500:])
    verdicts = [line.split() for line in answer.stdout.decode().splitlines()]
    believed = [int(verdict[2]) for verdict in verdicts if verdict[1] == "believed"]
    assert len(verdicts) == 300
    assert 0 < len(believed) < 300
    assert set(believed) <= {0, *range(1000, 1020)}
