"""For readers that know no old row but a whole one: anything else stops the source."""

from collections.abc import Callable

from walstream.errors import HistoryError
from walstream.lsn import show
from walstream.op import Kind, ReplicationOp

Encode = Callable[[ReplicationOp], bytes]


def whole_rows(encode: Encode) -> Encode:
    """Encode as another does; raise HistoryError for an op that lacks some value."""

    def checked(op: ReplicationOp) -> bytes:
        if op.absent or (op.kind is Kind.UPDATE and op.old is None):
            raise HistoryError(
                f"an op of table {op.table.full_name!r} at ({show(op.lsn)}, "
                f"{op.seq_id}) has no complete old row, and strict is true",
                hint="set REPLICA IDENTITY FULL on the table for later ops; strict = "
                "false lets this one pass",
            )
        return encode(op)

    return checked
