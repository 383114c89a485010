"""A copy of the checkout, in which one source at a time is broken."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Self

ROOT: Final = Path(__file__).parents[2]


class Tree:
    """A folder with everything that tests of the project need."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    @contextmanager
    def copied(cls, of: Path = ROOT) -> Iterator[Self]:
        """Copy what git knows of, and what it would add; delete the copy behind it."""
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=of,
            check=True,
            capture_output=True,
        )
        with tempfile.TemporaryDirectory(prefix="walstream-museum-") as folder:
            for name in filter(None, listed.stdout.decode().split("\0")):
                source, target = of / name, Path(folder, name)
                if source.is_file():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(source, target)
            yield cls(Path(folder))

    @contextmanager
    def broken(self, path: str, text: str) -> Iterator[None]:
        """Let a file have this text meanwhile."""
        file = self.root / path
        before = file.read_text("utf-8")
        try:
            self._write(file, text)
            yield
        finally:
            self._write(file, before)

    @staticmethod
    def _write(file: Path, text: str) -> None:
        file.write_text(text, "utf-8")
        # a text of the same length, written in the same second, would not be compiled
        for stale in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
            stale.unlink()


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()
