"""What a worker's processes counted, one after the other: it never falls."""

from collections.abc import Mapping
from typing import Any, Final

from walstream.telemetry.meter import added

_COUNTED: Final = ("metrics", "errors")


class WorkerCounts:
    """Adds what the process that runs says to what those before it had said."""

    def __init__(self) -> None:
        self._before: dict[str, Any] = {}
        self._added: tuple[Any, dict[str, Any]] = None, {}  # for which state, and what

    @staticmethod
    def strip(state: Mapping[str, Any]) -> dict[str, Any]:
        """Give all that it says but the counts."""
        return {key: state[key] for key in state if key not in _COUNTED}

    def of(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """Give the sums, the last state of the process that runs included."""
        told, found = self._added
        if told is not state:  # adding up takes longer than all else of a turn
            found = added(self._before, _counts(state))
            self._added = state, found
        return found

    def keep(self, state: Mapping[str, Any]) -> None:
        """Keep what a process counted that has ended."""
        self._before = added(self._before, _counts(state))


def _counts(state: Mapping[str, Any]) -> dict[str, Any]:
    return {key: state[key] for key in _COUNTED if key in state}
