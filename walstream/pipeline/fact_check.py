"""Check of rows by their table's facts: labels and nulls that those do not know."""

from typing import Any

from walstream.op import ReplicationOp, Table
from walstream.pipeline.column_history import Labels
from walstream.row import Row


class FactCheck:
    """The columns of one table that may not hold each value."""

    def __init__(self, table: Table) -> None:
        self._required: list[int] = []  # may hold no null
        self._enums: list[tuple[int, frozenset[str]]] = []
        for index, facts in enumerate(table.facts):
            if facts.not_null:
                self._required.append(index)
            if facts.labels and not facts.element_oid:
                self._enums.append((index, frozenset(facts.labels)))

    def unknown(self, op: ReplicationOp) -> Labels:
        """Return the labels and nulls of an op's rows that the facts forbid."""
        found: dict[tuple[int, str | None], None] = {}
        if op.old is not None:
            self._look(op.old, found)
        if op.new is not None:
            self._look(op.new, found)
        return tuple(found) if found else ()

    def _look(self, row: Row, found: dict[tuple[int, str | None], None]) -> None:
        # a list is looked at without calls
        values: list[Any] = row if isinstance(row, list) else list(row)
        for index in self._required:
            if values[index] is None:
                found[index, None] = None
        for index, labels in self._enums:
            value = values[index]
            if isinstance(value, str) and value not in labels:
                found[index, value] = None
