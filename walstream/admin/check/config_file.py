"""What an operator should know of the configuration's file."""

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from walstream.errors import Repair
from walstream.finding import Finding, warning


def look_at_file(file: Path | None) -> Iterator[Finding]:
    """Judge the file in which secrets stand; None: they stand in none."""
    if file is None:
        return
    try:
        found = file.stat()
    except OSError:  # it was there a moment ago: who reads it again says why
        return
    if not found.st_mode & stat.S_IROTH:
        return
    yield warning(
        "configuration-open",
        f"configuration {file}",
        "other users may read it, and secrets stand in it",
        "whoever knows them may do what walstream may; ${file:...} keeps them apart",
        Repair(command=_closing(file.absolute(), found)),
    )


def _closing(file: Path, found: os.stat_result) -> str:
    """Write what leaves it to its owner and to who reads it now."""
    name = shlex.quote(str(file))
    if found.st_uid == os.geteuid() or found.st_gid in {os.getegid(), *os.getgroups()}:
        return f"chmod o= {name}"
    return f"chgrp {os.getegid()} {name}\nchmod g=r,o= {name}"
