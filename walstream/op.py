"""The op: one change of one row (or one truncation), named by `(lsn, seq_id)`.

The pair is the same in every replay and strictly increasing in the stream. An op keeps
PostgreSQL's texts; formats turn it into bytes.
"""

import time
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final

from walstream.lsn import Lsn
from walstream.row import Row, any_absent

EPOCH_S: Final = 946_684_800
"""2000-01-01 UTC, from where PostgreSQL counts, in Unix time."""

CHUNK_BITS: Final = 32
"""A snapshot row's seq_id is its chunk's number, and this many bits of index."""


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
    type_oids: tuple[int, ...] = ()  # what texts are written as: `written_as`
    source_columns: tuple[str, ...] = ()
    """The columns' names in the database, where a handler renamed some; (): as here."""

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
    absent: bool = False  # does a row hold a value that was not sent?
    key_changed: bool = False  # an Update that moved its key: it took two numbers
    row_lsn: Lsn = 0  # of the row's own record
    xid: int = 0
    commit_time: int = 0  # microseconds since 2000-01-01 UTC, as PostgreSQL counts
    snapshot: bool = False  # a backfilled row
    partitions: int = 0  # a Truncate's barrier: the partitions that it went to
    info: bytes = b""  # what is said of its whole transaction, as JSON


def halves(update: ReplicationOp) -> tuple[ReplicationOp, ReplicationOp]:
    """Split an Update that moved its key: Delete of the old row, Insert of the new.

    Each goes under its own key, so that each key's history is complete; they take the
    two consecutive seq_ids that the assembler reserved.
    """
    return (
        replace(
            update,
            kind=Kind.DELETE,
            new=None,
            absent=any_absent(update.old),
            key_changed=False,
        ),
        replace(
            update,
            kind=Kind.INSERT,
            old=None,
            absent=any_absent(update.new),
            seq_id=update.seq_id + 1,
            key_changed=False,
        ),
    )


def snapshot_truncate(table: Table, lsn: Lsn, chunk: int) -> ReplicationOp:
    """Let a table's readers empty it: its rows come anew, with a snapshot of `lsn`.

    `chunk` is a number of its own, below those of the rows.
    """
    return ReplicationOp(
        Kind.TRUNCATE,
        table,
        lsn,
        chunk << CHUNK_BITS,
        row_lsn=lsn,
        commit_time=int((time.time() - EPOCH_S) * 1_000_000),
        snapshot=True,
    )
