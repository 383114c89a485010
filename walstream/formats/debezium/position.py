"""The position of an op in a record of these formats: `(lsn, seq_id)`.

The transaction block has it where it is filled: the first LSN of `source.sequence`, and
`total_order` - 1. Else a header does, `28318112/0`.
"""

from typing import Final

from walstream.lsn import MAX, Lsn
from walstream.op import ReplicationOp

HEADER: Final = "walstream-position"


def header(op: ReplicationOp) -> tuple[str, bytes]:
    """Return the header that names an op."""
    return HEADER, b"%d/%d" % (op.lsn, op.seq_id)


def read_header(value: bytes) -> tuple[Lsn, int]:
    """Read its value; raise ValueError for anything else."""
    lsn, slash, seq_id = value.partition(b"/")
    if not (slash and lsn.isdigit() and seq_id.isdigit()):
        raise ValueError("no position")
    if int(lsn) > MAX or int(seq_id) > MAX:
        raise ValueError("no position")
    return int(lsn), int(seq_id)
