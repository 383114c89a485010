"""Commands of an installation of its own, which sees nothing of the sources."""

import os
import subprocess
from pathlib import Path
from typing import Final

_WAIT_S: Final = 900


def run(folder: Path, *command: str | Path, fails: bool = False, tmp: str = "") -> str:
    """Run a command far from the sources; give what it printed.

    `tmp` is a folder for its temporary files.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    ended = subprocess.run(
        command,
        cwd=folder,
        env=environment | ({"TMPDIR": tmp} if tmp else {}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=_WAIT_S,
        check=False,
    )
    assert (ended.returncode != 0) is fails, ended.stdout
    return ended.stdout
