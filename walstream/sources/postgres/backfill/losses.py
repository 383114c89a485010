"""Values of existing rows that a sink's format has no form for, over all chunks."""

from collections import Counter
from collections.abc import Mapping

import structlog

from walstream.kafka.debezium_losses import Losses
from walstream.spark.outcome import ColumnLosses
from walstream.telemetry.fields import SINK, TABLE

_log = structlog.get_logger()


class BackfillLosses:
    """Counts of what the tasks of one backfill lost."""

    def __init__(self) -> None:
        self._told: dict[str, Losses] = {}  # by sink
        self._counts: Counter[tuple[str, str, str, str]] = Counter()

    def add(self, sink: str, tables: Mapping[str, ColumnLosses]) -> None:
        """Count what a chunk lost; log columns and reasons that are new."""
        for table, losses in tables.items():
            self._told.setdefault(sink, Losses(sink)).look(table, losses)
            for (column, reason), count in losses.lost.items():
                self._counts[sink, table, column, reason] += count

    def tell(self) -> None:
        """Log what all chunks lost."""
        for (sink, table, column, reason), count in self._counts.items():
            _log.warning(
                "values of the backfill had no form in Debezium's records",
                **{TABLE: table, SINK: sink},
                column=column,
                reason=reason,
                count=count,
            )
        self._counts.clear()
