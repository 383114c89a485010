"""The position of an op in a record of these formats: `(lsn, seq_id)`.

A header has it, `28318112/0`; or where the transaction block is filled, the envelope:
the first LSN of `source.sequence`, and `total_order` - 1.

Records of Debezium itself have neither: for them it is the row's own LSN and the order
in the transaction. That orders the changes of one row, and no more: the rows of a
transaction that was open for long have lower LSNs than what was committed before it,
and rows of one WAL record share theirs.
"""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import orjson

from walstream.formats.debezium.options import DebeziumOptions
from walstream.lsn import MAX, Lsn
from walstream.op import ReplicationOp

HEADER: Final = "walstream-position"
Headers = list[tuple[str, str | bytes | None]]
_OURS: Final = "walstream"  # what `source.version` begins with, unless it is set


class OpPosition(NamedTuple):
    """The position of an op, as far as its record tells it."""

    lsn: Lsn
    seq_id: int
    exact: bool  # is it walstream's name of the op, the same in every replay?


class PositionHeaders:
    """Makes the headers that name a table's ops, where no field of a record does."""

    def __init__(self, options: DebeziumOptions, *, unwrapped: bool) -> None:
        told = options.transaction_block and options.version.startswith(_OURS)
        self._of_rows = options.position_header
        self._of_changes = options.position_header and (unwrapped or not told)
        self._lsn: Lsn = -1
        self._begin = ""

    def of(self, op: ReplicationOp) -> Headers:
        """Return the header of an op's records, if they need one."""
        if not (self._of_rows if op.snapshot else self._of_changes):
            return []
        if op.lsn != self._lsn:
            self._lsn = op.lsn
            self._begin = f"{op.lsn}/"
        return [(HEADER, f"{self._begin}{op.seq_id}".encode())]


def position(envelope: Mapping[str, Any], headers: Mapping[str, bytes]) -> OpPosition:
    """Read the position of an envelope's op.

    Raises ValueError, TypeError or KeyError for another shape.
    """
    named = headers.get(HEADER)
    if named is not None:
        return OpPosition(*read_header(named), exact=True)
    source, block = envelope["source"], envelope.get("transaction")
    order = int(block["total_order"]) - 1 if block else 0
    if block and str(source.get("version")).startswith(_OURS):
        lsn = int(orjson.loads(source["sequence"])[0])
        return OpPosition(*_checked(lsn, order), exact=True)
    return OpPosition(*_checked(source.get("lsn") or 0, order), exact=False)


def read_header(value: bytes) -> tuple[Lsn, int]:
    """Read the header's value; raise ValueError for anything else."""
    lsn, slash, seq_id = value.partition(b"/")
    if not (slash and lsn.isdigit() and seq_id.isdigit()):
        raise ValueError("no position")
    return _checked(int(lsn), int(seq_id))


def _checked(lsn: Lsn, seq_id: int) -> tuple[Lsn, int]:
    if not (0 <= lsn <= MAX and 0 <= seq_id <= MAX):
        raise ValueError("no position")
    return lsn, seq_id
