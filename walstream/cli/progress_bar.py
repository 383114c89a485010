"""A bar on the terminal for each backfill that runs, and for each poll that is long."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from walstream.sources.report import WorkerReport
from walstream.telemetry.terminal import escape

_PARTS: Final = 1000
_LONG_S: Final = 1.0
_MIB: Final = 1 << 20


Reports = Mapping[str, WorkerReport]
"""Every source's last report."""


class _Work(NamedTuple):
    """What is under way."""

    name: str
    said: str
    share: float | None = None  # None: nobody knows how much there is


class Bars:
    """Drawn from what the workers report, and gone when nothing takes long."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._progress: Progress | None = None
        self._tasks: dict[str, TaskID] = {}

    def show(self, reports: Reports) -> None:
        """Take in every source's last report; a terminal that is gone shows nothing."""
        with contextlib.suppress(OSError):
            self._show(reports)

    def _show(self, reports: Reports) -> None:
        running = [*_backfills(reports), *_polls(reports)]
        if not running:
            self.close()
            return
        if self._progress is None:
            self._progress = Progress(
                TextColumn("{task.description}", markup=False),
                BarColumn(),
                TextColumn("{task.fields[said]}", markup=False),
                TimeRemainingColumn(),
                console=self._console,
                transient=True,
            )
            self._progress.start()
        self._draw(self._progress, running)

    def _draw(self, progress: Progress, running: list[_Work]) -> None:
        for name in self._tasks.keys() - {work.name for work in running}:
            progress.remove_task(self._tasks.pop(name))
        for work in running:
            if work.name not in self._tasks:
                total = None if work.share is None else _PARTS
                added = progress.add_task(escape(work.name), total=total, said="")
                self._tasks[work.name] = added
            progress.update(
                self._tasks[work.name],
                completed=(work.share or 0) * _PARTS,
                said=escape(work.said),
            )

    def close(self) -> None:
        """Leave the terminal as it was."""
        progress, self._progress = self._progress, None
        self._tasks = {}
        if progress is not None:
            with contextlib.suppress(OSError):
                progress.stop()


def _backfills(reports: Reports) -> Iterator[_Work]:
    for name, report in reports.items():
        if report.stream and (backfill := report.stream.backfill):
            yield _Work(
                f"backfill {name}",
                f"{backfill.share:>4.0%} {backfill.rows:,} rows,"
                f" {backfill.bytes / _MIB:,.0f} MiB,"
                f" {backfill.rows_per_s:,.0f} rows/s",
                backfill.share,
            )


def _polls(reports: Reports) -> Iterator[_Work]:
    for name, report in reports.items():
        for table, told in (report.polls.tables if report.polls else {}).items():
            poll = told.poll
            if poll and poll.s > _LONG_S:
                said = f"{poll.rows:,} rows, {poll.rows / poll.s:,.0f} rows/s"
                yield _Work(f"poll {name}, {table}", said)
