"""Status of a backfill, from its record and from the worker that runs it."""

import shlex
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from walstream.sources.postgres.backfill.progress import BackfillProgress
from walstream.sources.report import BackfillReport

_SHOWN: Final = 100  # characters of a condition


@dataclass(frozen=True, slots=True)
class BackfillStatus:
    """Existing rows that are still to be sent."""

    state: str  # running | waiting | done | incomplete
    tables: list[str]  # that are not finished
    failed: dict[str, str]  # tables that were given up, and why
    rows: int  # delivered; of tables that are not finished since the last start
    rows_per_s: float | None  # while it runs
    share: float | None  # of the bytes to read under this snapshot, 0 to 1
    left_s: float | None  # about
    waits: str = ""  # why chunks are put back, where none gets through
    where: dict[str, str] = field(default_factory=dict)
    """Conditions of tables of which a part is read, cut short."""


def backfill_status(
    record: BackfillProgress | None, told: BackfillReport | None
) -> BackfillStatus | None:
    """Return what is kept and what a worker tells; None: there never was one."""
    if record is None:
        return None
    state = "incomplete" if record.failed else "done"
    if told is not None:
        state = "running"
    elif record.tables:
        state = "waiting"
    return BackfillStatus(
        state=state,
        tables=list(record.tables),
        failed=dict(record.failed),
        rows=told.rows_before + told.rows if told else record.rows,
        rows_per_s=told.rows_per_s if told else None,
        share=told.share if told else None,
        left_s=told.left_s if told else None,
        waits=told.waits if told else "",
        where={name: sql[:_SHOWN] for name, sql in record.where.items()},
    )


def asking_again(source: str, tables: Iterable[str]) -> str:
    """Write the command that has these tables read once more."""
    return shlex.join(["walstream", "backfill", "--source", source, *tables])


def problems(source: str, record: BackfillProgress | None) -> list[str]:
    """Return which tables' rows are not all in Kafka; each ends with the command."""
    if record is None:
        return []
    return [
        f"the backfill of {table!r} failed ({why}): {asking_again(source, [table])}"
        for table, why in record.failed.items()
    ]
