"""Findings of `check` about the configuration file."""

import os
import shlex
import stat
from collections.abc import Iterator
from pathlib import Path

from walstream.errors import Repair
from walstream.finding import Finding, warning


def look_at_file(file: Path | None) -> Iterator[Finding]:
    """Return a finding about the file that holds secrets; None if no file does."""
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
        "other users may read it, and it holds secrets",
        "with them others can do what walstream may do; ${file:...} keeps them out of "
        "the file",
        Repair(command=_closing(file.absolute(), found)),
    )


def _closing(file: Path, found: os.stat_result) -> str:
    """Write what leaves it to its owner and to who reads it now."""
    name = shlex.quote(str(file))
    if found.st_uid == os.geteuid() or found.st_gid in {os.getegid(), *os.getgroups()}:
        return f"chmod o= {name}"
    return f"chgrp {os.getegid()} {name}\nchmod g=r,o= {name}"
