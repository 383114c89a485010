"""The shim: compiled when it is needed, and told what to interrupt over a shared file.

`shim.c` says what a call site is. Its order and its answer lie in one file that every
process of a run maps; a second file lists the calls.
"""

import hashlib
import mmap
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Final

from tests.support.project.own_coverage import ROOT

SOURCE: Final = Path(__file__).with_name("shim.c")
_BUILT: Final = ROOT / "build" / "callsites"
# as `struct order` of shim.c: what is wanted, and behind it what happened
_WANTED: Final = struct.Struct("512sIIiIi")
_HAPPENED: Final = struct.Struct("IIIi")
_SIZE: Final = _WANTED.size + _HAPPENED.size
_OPTIONS: Final = ("-shared", "-fPIC", "-O1", "-g", "-Wall", "-Werror", "-ldl")


class Action(IntEnum):
    """What is done to a call."""

    NOTHING = 0
    KILL_BEFORE = 1
    KILL_AFTER = 2
    FAIL = 3


@dataclass(frozen=True, slots=True)
class Order:
    """One call of a site, and what is done to it."""

    site: str
    occurrence: int  # from 1, of all processes of the run
    action: Action
    error: int = 0  # errno
    group: bool = False  # the whole instance is killed, not the process alone


def compiled() -> Path:
    """Compile it, unless this very source was; return the library."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise FileNotFoundError("no gcc: apt-get install gcc libc6-dev")
    digest = hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:12]
    library = _BUILT / f"shim-{digest}.so"
    if not library.exists():
        _BUILT.mkdir(parents=True, exist_ok=True)
        fresh = library.with_suffix(".new")
        subprocess.run([compiler, SOURCE, "-o", fresh, *_OPTIONS], check=True)
        fresh.replace(library)
    return library


class Tap:
    """What one run's processes share with who drives it."""

    def __init__(self, folder: Path, spared: int, order: Order | None = None) -> None:
        """`spared` is a process group that is never killed: the driver's own."""
        folder.mkdir(parents=True, exist_ok=True)
        self._order = folder / "order"
        self._report = folder / "calls"
        self._report.write_bytes(b"")
        wanted = order or Order("", 0, Action.NOTHING)
        packed = _WANTED.pack(
            wanted.site.encode(),
            wanted.occurrence,
            wanted.action,
            wanted.error,
            wanted.group,
            spared,
        )
        self._order.write_bytes(packed.ljust(_SIZE, b"\0"))
        with self._order.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _SIZE)

    def environment(self, folder: Path, postgres: int, kafka: int) -> dict[str, str]:
        """Return what a process needs whose files are below `folder`; ports."""
        return {
            "LD_PRELOAD": str(compiled()),
            "CALLSITES_ORDER": str(self._order),
            "CALLSITES_REPORT": str(self._report),
            "CALLSITES_FOLDER": str(folder.resolve()),
            "CALLSITES_ROOT": str(ROOT),
            "CALLSITES_POSTGRES": str(postgres),
            "CALLSITES_KAFKA": str(kafka),
        }

    def arm(self) -> None:
        """Count from now on, and interrupt."""
        struct.pack_into("I", self._shared, _WANTED.size, 1)

    def disarm(self) -> None:
        struct.pack_into("I", self._shared, _WANTED.size, 0)

    @property
    def armed(self) -> bool:
        return bool(self._happened[0])

    @property
    def seen(self) -> int:
        """Count the calls of the ordered site."""
        return self._happened[1]

    @property
    def done(self) -> bool:
        """Tell whether the call was interrupted."""
        return bool(self._happened[2])

    @property
    def pid(self) -> int:
        """The process that was."""
        return self._happened[3]

    @property
    def _happened(self) -> tuple[int, int, int, int]:
        armed, seen, done, pid = _HAPPENED.unpack_from(self._shared, _WANTED.size)
        return armed, seen, done, pid

    def calls(self) -> list[tuple[int, str]]:
        """List the processes and sites of all calls, in their order."""
        lines = self._report.read_text("utf-8", errors="replace").splitlines()
        split = (line.partition(" ") for line in lines)
        return [(int(pid), site) for pid, _, site in split]

    def counts(self) -> Mapping[str, int]:
        """Count the calls of each site."""
        return Counter(site for _, site in self.calls())

    def close(self) -> None:
        self._shared.close()
