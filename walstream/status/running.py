"""Which sources the running instance streams now: those alone hold slots of ours.

A worker that waits uses its folder too, while somebody else holds the slot.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from walstream.errors import PermissionLacking
from walstream.state.control import ask_status


@dataclass(frozen=True, slots=True)
class Streaming:
    """What the running instance streams; empty where none runs, or none answers."""

    instance: int | None = None  # the supervisor's process
    workers: Mapping[str, int] = field(default_factory=dict)  # processes, by source


def streaming(state: Path) -> Streaming:
    """Ask the instance of a state folder."""
    try:
        return of_status(ask_status(state) or {})
    except (OSError, PermissionLacking):  # another user's
        return Streaming()


def of_status(status: Mapping[str, Any]) -> Streaming:
    """Take from a status whose slots are read by it."""
    workers = {
        name: told["pid"]
        for name, told in status.get("sources", {}).items()
        if told.get("state") == "streaming" and told.get("pid") is not None
    }
    return Streaming(status.get("pid"), workers)
