"""pgoutput, protocol version 1: bytes of the logical replication stream -> Message.

No I/O and no state: what a relation's columns are, which transaction a row belongs to
and what may be confirmed is the assembler's and the ledger's business. Source of the
formats: PostgreSQL manual, "Logical Replication Message Formats".
"""

from walstream.pipeline.pgoutput.decode import decode
from walstream.pipeline.pgoutput.messages import (
    Begin,
    Column,
    Commit,
    Delete,
    Insert,
    LogicalMessage,
    Message,
    Origin,
    Relation,
    RowMessage,
    Truncate,
    Type,
    Update,
)

__all__ = [
    "Begin",
    "Column",
    "Commit",
    "Delete",
    "Insert",
    "LogicalMessage",
    "Message",
    "Origin",
    "Relation",
    "RowMessage",
    "Truncate",
    "Type",
    "Update",
    "decode",
]
