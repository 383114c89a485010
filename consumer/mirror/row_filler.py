"""Values that an Update left out, read from the mirrored row."""

from abc import ABC, abstractmethod
from collections.abc import Callable

from consumer.handler import Transaction
from consumer.mirror.table_writer import Rows
from consumer.op import Op
from walstream.op import Kind


class RowFiller(ABC):
    """The part of a mirror that reads rows for other handlers."""

    def __init__(self, wanted: Callable[[str, str], bool]) -> None:
        """`wanted` tells the tables that are mirrored, by schema and name."""
        self._wanted = wanted

    def fill(self, tx: Transaction, op: Op, /) -> None:
        """Set what an Update's new row lacks, as the target has it now.

        Behind `handle_message` of the same op that is the row behind the op, unless a
        newer one was applied. What the target does not have, or of a table that is not
        mirrored or has no key, stays absent.
        """
        if op.kind is not Kind.UPDATE or not op.new.absent:
            return
        if not self._wanted(op.table.schema, op.table.name):
            return
        rows = self._rows(tx, op)
        key = rows.shape.key_of(dict(op.new.items()))
        if key is not None:
            self._write_now(rows)
            op.fill(rows.texts(key, tuple(sorted(op.new.absent))))

    @abstractmethod
    def _rows(self, tx: Transaction, op: Op) -> Rows:
        """Return the rows of the op's table."""

    @abstractmethod
    def _write_now(self, rows: Rows) -> None:
        """Write what waits of a table."""
