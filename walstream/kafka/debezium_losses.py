"""Losses in Debezium's records, which are logged once for each column."""

from collections.abc import Mapping
from typing import Protocol

import structlog

from walstream.telemetry.fields import SINK, TABLE

_log = structlog.get_logger()


class LossyColumns(Protocol):
    """The columns of one table, as far as a format has no form for them."""

    @property
    def left_out(self) -> tuple[str, ...]: ...

    @property
    def lost(self) -> Mapping[tuple[str, str], int]:
        """Values, by column and reason."""


class Losses:
    """Columns and values of a sink without a form, as far as they were logged."""

    def __init__(self, sink: str) -> None:
        self._sink = sink
        self._told: set[tuple[str, ...]] = set()

    def look(self, table: str, columns: LossyColumns) -> None:
        """Log what of a table was not logged before."""
        fields = {TABLE: table, SINK: self._sink}
        if columns.left_out and self._is_new(table, *columns.left_out):
            _log.warning(
                "columns of types that Debezium does not know are left out",
                **fields,
                columns=list(columns.left_out),
                hint="unknown = true writes them as bytes",
            )
        for (column, reason), count in list(columns.lost.items()):
            if self._is_new(table, column, reason):
                _log.warning(
                    "a value has no form in Debezium's records: null or the nearest "
                    "one is sent",
                    **fields,
                    column=column,
                    reason=reason,
                    count=count,
                    hint="docs/debezium.md lists such values, and the options that "
                    "keep them",
                )

    def _is_new(self, *what: str) -> bool:
        if what in self._told:
            return False
        self._told.add(what)
        return True
