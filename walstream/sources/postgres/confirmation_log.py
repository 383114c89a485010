"""Log of `-v` for a stream: each confirmed position, and the ops up to it.

Counts and names of tables, never a value. Without debug logging it costs a comparison
for each position, of which there are 50 a second at most.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final

import structlog

from walstream.lsn import Lsn, show
from walstream.telemetry.fields import LSN
from walstream.telemetry.meter import TableMeters

_MOST: Final = 5  # tables that are named
_log = structlog.get_logger()


class ConfirmationLog:
    """Compares the counts with those of the line before."""

    def __init__(self, delivered: Callable[[], int], tables: TableMeters) -> None:
        """`delivered` counts ops that every sink has."""
        self._delivered = delivered
        self._tables = tables
        self._before: tuple[int, Mapping[str, int]] | None = delivered(), tables.ops()

    def note(self, lsn: Lsn) -> None:
        """Log a position that was confirmed, if ops came since the last one."""
        if not logging.getLogger().isEnabledFor(logging.DEBUG):
            self._before = None
            return
        before, now = self._before, (self._delivered(), self._tables.ops())
        if before is not None and before[0] == now[0]:
            return  # what was read is named with its delivery
        self._before = now
        if before is None:
            return
        read = {
            name: count - before[1].get(name, 0)
            for name, count in now[1].items()
            if count > before[1].get(name, 0)
        }
        fields: dict[str, str | int] = {LSN: show(lsn)}
        fields["delivered"] = now[0] - before[0]
        if read:  # else the line before had named these ops: they were on their way
            fields["read"] = _said(read)
        _log.debug("confirmed", **fields)


def _said(counts: Mapping[str, int]) -> str:
    """Name the tables with the most ops."""
    ranked = sorted(counts, key=lambda name: -counts[name])
    said = [f"{name} {counts[name]:,}" for name in ranked[:_MOST]]
    more = len(ranked) - _MOST
    return ", ".join([*said, *([f"and {more} more tables"] if more > 0 else [])])
