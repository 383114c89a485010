"""A bar on the terminal for each backfill that runs."""

from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

_PARTS: Final = 1000


class Bars:
    """Drawn from what the workers report, and gone when none backfills."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def show(self, reports: Mapping[str, Mapping[str, Any]]) -> None:
        """Take in every source's last report."""
        running = {
            name: report["backfill"]
            for name, report in reports.items()
            if report.get("backfill")
        }
        if not running:
            self.close()
            return
        if self._progress is None:
            self._progress = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}% {task.fields[said]}"),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._progress.start()
        for name, backfill in running.items():
            if name not in self._tasks:
                self._tasks[name] = self._progress.add_task(
                    f"backfill {name}", total=_PARTS, said=""
                )
            self._progress.update(
                self._tasks[name],
                completed=backfill["share"] * _PARTS,
                said=(
                    f"{backfill['rows']:,} rows, {backfill['bytes'] / (1 << 20):,.0f}"
                    f" MiB, {backfill['rows_per_s']:,.0f} rows/s"
                ),
            )

    def close(self) -> None:
        """Leave the terminal as it was."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None
            self._tasks = {}
