"""Facts about a transaction: how many rows of which table it has; pure.

    {"txinfo_rowcount":"3","txinfo_rowcount_msg.msg":"1","txinfo_rowcount_msg.sub":"2"}

Known at the commit only. It stands in a record of its own, or behind the other fields
of each record of the transaction.
"""

import orjson

from walstream.lsn import Lsn
from walstream.op import Table


class RowCounts:
    """The records of one transaction, counted as they go out."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # by `schema.table`, in order of appearance

    def add(self, table: Table, rows: int = 1) -> None:
        name = table.full_name
        self._counts[name] = self._counts.get(name, 0) + rows

    @property
    def rows(self) -> int:
        """Count those of all tables."""
        return sum(self._counts.values())

    def render(self) -> bytes:
        """Write the counts: every value is a text."""
        counts = {"txinfo_rowcount": str(self.rows)}
        for name, count in self._counts.items():
            counts[f"txinfo_rowcount_{name}"] = str(count)
        return orjson.dumps(counts)

    def record(self, lsn: Lsn) -> bytes:
        """Write the transaction's own record; `lsn` is that of its commit."""
        return b'{"_seqno":"%d","txinfo":%b}' % (lsn, self.render())
