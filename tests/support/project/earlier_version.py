"""The sources of an earlier version, taken from the repository's own history."""

import io
import subprocess
import tarfile
from pathlib import Path
from typing import Final

from tests.support.project.own_coverage import ROOT

COMMIT: Final = "7fbd41a7819ed0b59521b29e62febf9637c62062"
"""A version that was installed before walstream was several distributions."""


def absent() -> str:
    """Say why there is none here, or ""."""
    known = _git("cat-file", "-e", f"{COMMIT}^{{commit}}")
    return (
        "" if known.returncode == 0 else f"{COMMIT[:7]} is not in this clone: fetch it"
    )


def sources(folder: Path) -> Path:
    """Write them into a folder, which is made."""
    packed = _git("archive", "--format=tar", COMMIT)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder


def text(path: str) -> str:
    """Read one file of it."""
    return _git("show", f"{COMMIT}:{path}").stdout.decode()


def _git(*arguments: str) -> "subprocess.CompletedProcess[bytes]":
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, capture_output=True, check=False)
