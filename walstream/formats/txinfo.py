"""Facts about a transaction: how many rows of which table it has; pure.

    {"txinfo_rowcount":"3","txinfo_rowcount_msg.msg":"1","txinfo_rowcount_msg.sub":"2"}

Known at the commit only. It stands in a record of its own, or behind the other fields
of each record of the transaction.
"""

from collections.abc import Mapping

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
    def tables(self) -> Mapping[str, int]:
        """Count those of each table, in order of appearance."""
        return self._counts

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


class TxinfoRecords:
    """Writes one record for each transaction; `lsn` is that of its commit."""

    def begin(
        self, _xid: int | None, _first: Lsn, _commit_time: int
    ) -> tuple[bytes, bytes] | None:
        """Return None: what there is to say is known at the end."""
        return None

    def end(
        self, _xid: int | None, lsns: tuple[Lsn, Lsn], _time: int, counts: RowCounts
    ) -> tuple[bytes, bytes]:
        """Write key and value; `lsns` are those of the commit, and of its end."""
        lsn, _ = lsns
        return b"%d" % lsn, b'{"_seqno":"%d","txinfo":%b}' % (lsn, counts.render())
