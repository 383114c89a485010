"""The ten messages of pgoutput, protocol version 1, with the manual's names.

Rows and transactions come by the million: dataclasses with slots, not frozen. Those
that come most have a constructor of their own, which compiles to plain assignments.
"""

from dataclasses import dataclass

from walstream.lsn import Lsn
from walstream.row import Value


@dataclass(slots=True, init=False)
class Begin:
    final_lsn: Lsn  # of the commit record
    commit_time: int  # microseconds since 2000-01-01 UTC
    xid: int

    def __init__(self, final_lsn: Lsn, commit_time: int, xid: int) -> None:
        self.final_lsn = final_lsn
        self.commit_time = commit_time
        self.xid = xid


@dataclass(slots=True, init=False)
class Commit:
    flags: int
    commit_lsn: Lsn
    end_lsn: Lsn  # the first byte after the commit record
    commit_time: int  # microseconds since 2000-01-01 UTC

    def __init__(
        self, flags: int, commit_lsn: Lsn, end_lsn: Lsn, commit_time: int
    ) -> None:
        self.flags = flags
        self.commit_lsn = commit_lsn
        self.end_lsn = end_lsn
        self.commit_time = commit_time


@dataclass(slots=True)
class Origin:
    commit_lsn: Lsn  # on the origin server
    name: str


@dataclass(slots=True)
class Column:
    is_key: bool  # part of the replica identity; under FULL every column is
    name: str
    type_oid: int
    type_modifier: int


@dataclass(slots=True)
class Relation:
    oid: int
    namespace: str
    name: str
    replica_identity: str  # d default, n nothing, f full, i index
    columns: list[Column]


@dataclass(slots=True)
class Type:
    oid: int
    namespace: str
    name: str


@dataclass(slots=True, init=False)
class Insert:
    relation_oid: int
    new: list[Value]
    toasted: bool  # does new hold UNCHANGED? (a row filter turns updates into inserts)

    def __init__(
        self,
        relation_oid: int,
        new: list[Value],
        toasted: bool,  # noqa: FBT001 - positions are faster
    ) -> None:
        self.relation_oid = relation_oid
        self.new = new
        self.toasted = toasted


@dataclass(slots=True, init=False)
class Update:
    relation_oid: int
    old: list[Value] | None
    old_whole: bool  # 'O': every column was logged; 'K': the replica identity only
    new: list[Value]
    toasted: bool  # does new hold UNCHANGED?

    def __init__(
        self,
        relation_oid: int,
        old: list[Value] | None,
        old_whole: bool,  # noqa: FBT001 - positions are faster
        new: list[Value],
        toasted: bool,  # noqa: FBT001 - likewise
    ) -> None:
        self.relation_oid = relation_oid
        self.old = old
        self.old_whole = old_whole
        self.new = new
        self.toasted = toasted


@dataclass(slots=True, init=False)
class Delete:
    relation_oid: int
    old: list[Value]
    old_whole: bool  # as in Update

    def __init__(
        self,
        relation_oid: int,
        old: list[Value],
        old_whole: bool,  # noqa: FBT001 - positions are faster
    ) -> None:
        self.relation_oid = relation_oid
        self.old = old
        self.old_whole = old_whole


@dataclass(slots=True)
class Truncate:
    options: int  # 1 CASCADE, 2 RESTART IDENTITY
    relation_oids: tuple[int, ...]


@dataclass(slots=True)
class LogicalMessage:
    """A message written by pg_logical_emit_message."""

    transactional: bool
    lsn: Lsn
    prefix: str
    content: bytes


RowMessage = Insert | Update | Delete

Message = (
    Begin
    | Commit
    | Origin
    | Relation
    | Type
    | Insert
    | Update
    | Delete
    | Truncate
    | LogicalMessage
)
