"""The op: one change of one row (or one truncation), named by `(lsn, seq_id)`.

The pair is the same in every replay and strictly increasing in the stream. An op keeps
PostgreSQL's texts; formats turn it into bytes.
"""

from dataclasses import dataclass
from enum import Enum
from typing import Any

from walstream.lsn import Lsn
from walstream.row import Row


class Kind(Enum):
    """What happened to the row."""

    INSERT = "Insert"
    UPDATE = "Update"
    DELETE = "Delete"
    TRUNCATE = "Truncate"


@dataclass(slots=True, eq=False)
class Table:
    """A table as one Relation message described it: names and shape of its rows.

    A change of the table makes a new Table; an op keeps the one it was written with.
    """

    schema: str
    name: str
    columns: tuple[str, ...]  # in the row's order
    key: tuple[int, ...] = ()  # indexes into columns of the row key, in table order
    type_oids: tuple[int, ...] = ()
    cache: Any = None  # what a sink prepared for this table: rendered once, used per row

    @property
    def full_name(self) -> str:
        """`schema.table`, as mappings and patterns spell it."""
        return f"{self.schema}.{self.name}"


@dataclass(slots=True)
class ReplicationOp:
    """One op. `old` and `new` are as long as `table.columns`, or None."""

    kind: Kind
    table: Table
    lsn: Lsn  # of the transaction's commit record
    seq_id: int  # from 0, within the transaction
    old: Row | None = None  # None: no old row was sent, or there is none
    new: Row | None = None
    row_lsn: Lsn = 0  # of the row's own record
    xid: int = 0
    commit_time: int = 0  # microseconds since 2000-01-01 UTC, as PostgreSQL counts
    snapshot: bool = False  # a backfilled row
    partitions: int = 0  # a Truncate's barrier: the partitions that it went to
