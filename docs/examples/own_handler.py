"""A custom handler that rounds a number.

The package's pyproject.toml names it:

[project.entry-points."walstream.handlers"]
round = "own_handler:Rounded"

[[sinks.kafka.handlers]]
kind = "round"
tables = ["public.orders"]
options = { column = "amount" }
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any

from walstream.op import ReplicationOp, Table
from walstream.row import Row


class Rounded:
    def __init__(self, table: Table, options: Mapping[str, Any]) -> None:
        self._index = table.columns.index(options["column"])

    def handle(self, op: ReplicationOp) -> Iterator[ReplicationOp]:
        yield replace(op, old=self._rounded(op.old), new=self._rounded(op.new))

    def _rounded(self, row: Row | None) -> Row | None:
        if row is None or not isinstance(row[self._index], str):
            return row  # no such row; NULL, or a value that was not sent
        values = list(row)
        values[self._index] = str(round(Decimal(str(row[self._index]))))
        return values
