"""Jars of Maven coordinates with all that they need, found again without a network."""

import fcntl
import hashlib
import os
from pathlib import Path

from walstream.testing.servers.jars import recall, remember


class JarsUnreachable(RuntimeError):
    """Maven Central does not answer, or has no such artifact."""


def jars(*coordinates: str) -> list[Path]:
    """Return the class path; raise JarsUnreachable if it cannot be fetched.

    A coordinate that ends in `!` has its version whatever a parent says.
    """
    asked = "+".join(coordinates)
    name = hashlib.sha256(asked.encode()).hexdigest()[:16]
    memory = folder_of_jars() / f"{name}.jars"
    if remembered := recall(memory):
        return remembered
    memory.parent.mkdir(parents=True, exist_ok=True)
    with memory.with_suffix(".lock").open("w") as lock:
        # jgo refuses to write a jar that another process has just brought
        fcntl.flock(lock, fcntl.LOCK_EX)
        return recall(memory) or _fetched(asked, memory)


def _fetched(asked: str, memory: Path) -> list[Path]:
    import jgo  # noqa: PLC0415 - slow to import

    try:
        found = [artifact.resolve() for artifact in jgo.resolve(asked)]
    except (OSError, RuntimeError, ValueError) as error:
        raise JarsUnreachable(f"{asked}: not fetched from Maven: {error}") from error
    remember(memory, found)
    return found


def folder_of_jars() -> Path:
    """Return the folder in which what came from Maven is kept."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base, "walstream", "jars")
