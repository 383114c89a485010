"""The op: one change of one row (or one truncation), named by `(lsn, seq_id)`.

The pair is the same in every replay and strictly increasing in the stream. An op keeps
PostgreSQL's texts; formats turn it into bytes.
"""

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, Final

from walstream.lsn import Lsn
from walstream.row import Row, any_absent

EPOCH_S: Final = 946_684_800
"""2000-01-01 UTC, from where PostgreSQL counts, in Unix time."""


def postgres_time(unix_s: float) -> int:
    """Return a Unix time as PostgreSQL counts, in microseconds."""
    return int((unix_s - EPOCH_S) * 1_000_000)


CHUNK_BITS: Final = 32
"""A snapshot row's seq_id is its chunk's number, and this many bits of index."""


class Kind(Enum):
    """Kind of a change."""

    INSERT = "Insert"
    UPDATE = "Update"
    DELETE = "Delete"
    TRUNCATE = "Truncate"


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column as the catalog describes it: what the stream does not say of it."""

    not_null: bool = False  # by its own constraint, or by that of its domain
    default: str | None = None  # the expression, as pg_get_expr prints it
    type_oid: int = 0
    type_name: str = ""  # without its schema
    base_oid: int = 0  # of a domain: the type below it that is none
    base_name: str = ""
    base_modifier: int = -1
    element_oid: int = 0  # of an array, or of a domain over one: what it is made of
    element_name: str = ""
    labels: tuple[str, ...] = ()  # in order, of an enum or of an array's enum

    def __reduce__(self) -> tuple[type["ColumnFacts"], tuple[object, ...]]:
        """Return what pickle needs: a compiled class has no default for it."""
        base = self.base_oid, self.base_name, self.base_modifier
        rest = self.element_oid, self.element_name, self.labels
        own = self.not_null, self.default, self.type_oid, self.type_name
        return ColumnFacts, (*own, *base, *rest)


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
    oid: int = 0  # 0: not known
    modifiers: tuple[int, ...] = ()  # of the columns' types: precision, length …
    facts: tuple[ColumnFacts, ...] = ()  # (): nothing was asked

    def __reduce__(self) -> tuple[type["Table"], tuple[object, ...]]:
        """Return what pickle needs: a compiled class has no default for it."""
        fields = self.schema, self.name, self.columns, self.key, self.type_oids
        rest = self.source_columns, self.oid, self.modifiers, self.facts
        return Table, (*fields, *rest)

    @property
    def full_name(self) -> str:
        """`schema.table`, as in mappings and patterns."""
        return f"{self.schema}.{self.name}"


@dataclass(slots=True, init=False)
class ReplicationOp:
    """One op. `old` and `new` are as long as `table.columns`, or None."""

    kind: Kind
    table: Table
    lsn: Lsn  # of the transaction's commit record
    seq_id: int  # from 0, within the transaction
    old: Row | None  # None: no old row was sent, or there is none
    new: Row | None
    absent: bool  # does a row hold a value that was not sent?
    key_changed: bool  # an Update that moved its key: it took two numbers
    row_lsn: Lsn  # of the row's own record
    xid: int
    commit_time: int  # microseconds since 2000-01-01 UTC, as PostgreSQL counts
    snapshot: bool  # a backfilled row
    partitions: int  # a Truncate's barrier: the partitions that it went to
    info: bytes  # what is said of its whole transaction, as JSON

    def __init__(  # noqa: PLR0913, PLR0917 - written out: it compiles to assignments
        self,
        kind: Kind,
        table: Table,
        lsn: Lsn,
        seq_id: int,
        old: Row | None = None,
        new: Row | None = None,
        absent: bool = False,  # noqa: FBT001, FBT002 - positions are faster
        key_changed: bool = False,  # noqa: FBT001, FBT002 - likewise
        row_lsn: Lsn = 0,
        xid: int = 0,
        commit_time: int = 0,
        snapshot: bool = False,  # noqa: FBT001, FBT002 - likewise
        partitions: int = 0,
        info: bytes = b"",
    ) -> None:
        self.kind = kind
        self.table = table
        self.lsn = lsn
        self.seq_id = seq_id
        self.old = old
        self.new = new
        self.absent = absent
        self.key_changed = key_changed
        self.row_lsn = row_lsn
        self.xid = xid
        self.commit_time = commit_time
        self.snapshot = snapshot
        self.partitions = partitions
        self.info = info

    def __reduce__(self) -> tuple[type["ReplicationOp"], tuple[Any, ...]]:
        """Return what pickle needs, also if the class is compiled."""
        fields = self.kind, self.table, self.lsn, self.seq_id, self.old, self.new
        flags = self.absent, self.key_changed, self.row_lsn, self.xid
        rest = self.commit_time, self.snapshot, self.partitions, self.info
        return ReplicationOp, (*fields, *flags, *rest)


@dataclass(slots=True, init=False)
class LargeOp(ReplicationOp):
    """An op with placeholders for large values: only sinks that know them get it."""


@dataclass(frozen=True, slots=True)
class MessageOp:
    """A message of pg_logical_emit_message. It takes no seq_id.

    Outside of a transaction it has no xid, its `lsn` is its own, and its `commit_time`
    is when it was read.
    """

    prefix: str
    content: bytes
    lsn: Lsn  # of the commit record
    row_lsn: Lsn  # its own
    xid: int | None
    commit_time: int  # microseconds since 2000-01-01 UTC


def halves(update: ReplicationOp) -> tuple[ReplicationOp, ReplicationOp]:
    """Split an Update of a key: Delete of the old row, Insert of the new one.

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


def snapshot_truncate(
    table: Table, lsn: Lsn, chunk: int, commit_time: int
) -> ReplicationOp:
    """Return a Truncate for readers: the rows follow, from a snapshot at `lsn`.

    `chunk` is a number of its own, below those of the rows; `commit_time` is now.
    """
    return ReplicationOp(
        Kind.TRUNCATE,
        table,
        lsn,
        chunk << CHUNK_BITS,
        row_lsn=lsn,
        commit_time=commit_time,
        snapshot=True,
    )
