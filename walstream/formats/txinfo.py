"""Facts about a transaction: how many rows of which table it has; pure.

    {"txinfo_rowcount":"3","txinfo_rowcount_msg.msg":"1","txinfo_rowcount_msg.sub":"2"}

Known at the commit only. It stands in a record of its own, or behind the other fields
of each record of the transaction. The record of its own also says where the
transaction lies, and how many records of it went to each partition: a reader that has
so many has all of it.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar

import orjson

from walstream.lsn import Lsn
from walstream.op import EPOCH_S, Table


class RowCounts:
    """The records of one transaction, counted as they go out."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # by `schema.table`, in order of appearance
        self._sent: dict[str, dict[int, int]] = {}  # by topic and partition
        self.parked = 0  # records that were too large for their topic

    def add(self, table: Table, rows: int = 1) -> None:
        name = table.full_name
        self._counts[name] = self._counts.get(name, 0) + rows

    def send(self, topic: str, partition: int) -> None:
        """Count the record of an op that goes to this partition, or is there."""
        found = self._sent.setdefault(topic, {})
        found[partition] = found.get(partition, 0) + 1

    @property
    def tables(self) -> Mapping[str, int]:
        """Count those of each table, in order of appearance."""
        return self._counts

    @property
    def sent(self) -> Mapping[str, Mapping[int, int]]:
        """Count what went to each partition of each topic."""
        return self._sent

    @property
    def rows(self) -> int:
        """Count those of all tables."""
        return sum(self._counts.values())

    @property
    def empty(self) -> bool:
        """Return whether nothing was counted."""
        return not (self._counts or self._sent or self.parked)

    def render(self) -> bytes:
        """Write the counts of tables: every value is a text."""
        counts = {"txinfo_rowcount": str(self.rows)}
        for name, count in self._counts.items():
            counts[f"txinfo_rowcount_{name}"] = str(count)
        return orjson.dumps(counts)


class TxinfoRecords:
    """Writes one record for each transaction; `lsn` is that of its commit."""

    schemas: ClassVar[None] = None

    def begin(
        self, _xid: int | None, _first: Lsn, _commit_time: int
    ) -> tuple[bytes, bytes] | None:
        """Return None: what there is to say is known at the end."""
        return None

    def end(
        self,
        xid: int | None,
        lsns: tuple[Lsn, Lsn],
        commit_time: int,
        counts: RowCounts,
    ) -> tuple[bytes, bytes]:
        """Write key and value; `lsns` are those of the commit, and of its end.

        Times are in microseconds since 2000 here, and in records since 1970.
        """
        lsn, end_lsn = lsns
        rows = {
            topic: {str(number): count for number, count in sorted(found.items())}
            for topic, found in counts.sent.items()
        }
        more = {
            "lsn": lsn,
            "end_lsn": end_lsn,
            "xid": xid,
            "commit_time": commit_time + EPOCH_S * 1_000_000,
            "rows": rows,
            "parked": counts.parked,
        }
        head = b'{"_seqno":"%d","txinfo":%b,' % (lsn, counts.render())
        return b"%d" % lsn, head + orjson.dumps(more)[1:]


def resolved_record(
    lsn: Lsn, unix_micros: int, following: Mapping[str, Sequence[int]]
) -> tuple[bytes, bytes]:
    """Write what says that each op below `lsn` is below the offsets that follow.

    These are of each topic's partitions, from the first on.
    """
    told = {"resolved": lsn, "time": unix_micros, "next": following}
    return b"resolved", orjson.dumps(told)
