"""What a running instance tells of one of its sources, whatever the source's kind."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

WAITS: Final = 5
_DEFECT: Final = 1

Told = Mapping[str, Any]
"""A source's report; empty: nothing runs."""


def state_of(told: Told) -> tuple[str, int] | None:
    """Name the state, and the exit code that it stands for; None: nothing runs."""
    if not told:
        return None
    if (code := told["exit_code"]) is not None:
        return ("failed" if code else "stopped"), code
    if told["lent"]:
        return "lent", 0
    if told["silent"]:
        return "silent", _DEFECT
    # without a process it died, and will be started again
    state = told.get("state", "starting") if told["pid"] else "waiting"
    return state, WAITS if state == "waiting" or told.get("stalls") else 0


def problems_of(told: Told, state: str, error: Told | None) -> Iterator[str]:
    """Say why it is red, the nearest cause first; `error` is the source's last one."""
    waits = state == "waiting" and told.get("state") == "waiting"
    if error and (waits or state == "failed"):
        yield error["error"]
    if pid := told.get("mute"):
        yield f"process {pid} holds the state folder, but does not answer"
    elif state == "silent":
        yield "its worker runs but does not report"
    if (code := told.get("died_with")) is not None:
        yield (
            f"its worker died with exit code {code} and will be started again: the"
            " log says why"
        )
    yield from told.get("stalls", ())
