"""A shell that asks the installed command what a word may be."""

import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Final

_COMMAND: Final = Path(sys.executable).with_name("walstream")
_WAIT_S: Final = 30.0


def completed(line: str, *, folder: Path = Path("/")) -> list[str]:
    """Give what bash would offer at the end of a line; claim that it says no more."""
    words = shlex.split(line)
    place = len(words) if line.endswith(" ") else len(words) - 1
    done = subprocess.run(
        [_COMMAND],
        capture_output=True,
        text=True,
        check=False,
        timeout=_WAIT_S,
        cwd=folder,
        env={
            **os.environ,
            "_WALSTREAM_COMPLETE": "complete_bash",
            "COMP_WORDS": line,
            "COMP_CWORD": str(place),
        },
    )
    assert done.stderr == ""
    return done.stdout.split()
