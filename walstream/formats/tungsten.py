"""The format `tungsten`: one row, every value a text or null.

    {"_seqno":"4865","_source_table":"msg","_committime":"2017-07-13 15:30:37.0",
     "_source_schema":"test","record":{"msg":"Hello","id":"7"},"_optype":"INSERT"}

`_seqno` is the commit LSN, one number a transaction. `record` is the new row, or the
old one of a DELETE, in the table's order; what was not sent is left out. A Truncate has
no form.
"""

from itertools import compress
from typing import ClassVar, Final

import orjson

from walstream.errors import WalstreamError
from walstream.formats import timestamp
from walstream.formats.context import Context
from walstream.op import Kind, ReplicationOp, Table
from walstream.row import NotSent

_TYPES: Final = {
    Kind.INSERT: b"INSERT",
    Kind.UPDATE: b"UPDATE",
    Kind.DELETE: b"DELETE",
}


class TungstenEncoder:
    """Encodes the ops of one table."""

    truncates: ClassVar = False

    def __init__(self, table: Table, context: Context) -> None:
        embed = context.embed
        self._columns = table.columns
        self.texts = range(len(table.columns))
        self._full_name = table.full_name
        self._table = self._schema = b""
        if "table" in embed:
            self._table = b',"_source_table":%b' % orjson.dumps(table.name)
        if "schema" in embed:
            self._schema = b',"_source_schema":%b' % orjson.dumps(table.schema)
        self._timed = "committime" in embed
        self._stamp = (0, b"")

    def encode(self, op: ReplicationOp) -> bytes:
        """Render one op of this encoder's table; a Truncate is an error."""
        kind = _TYPES.get(op.kind)
        if kind is None:
            raise WalstreamError(
                f"a TRUNCATE of table {self._full_name!r} has no record"
            )
        return b'{"_seqno":"%d"%b%b%b,"record":%b,"_optype":"%b"%b}' % (
            op.lsn,
            self._table,
            self._time(op.commit_time) if self._timed else b"",
            self._schema,
            self._record(op),
            kind,
            b',"txinfo":%b' % op.info if op.info else b"",
        )

    def _record(self, op: ReplicationOp) -> bytes:
        row = (op.old if op.kind is Kind.DELETE else op.new) or ()
        columns = self._columns
        if op.absent:
            sent = [not isinstance(value, NotSent) for value in row]
            row, columns = list(compress(row, sent)), tuple(compress(columns, sent))
        return orjson.dumps(dict(zip(columns, row, strict=True)))

    def _time(self, commit_time: int) -> bytes:
        if commit_time != self._stamp[0] or not self._stamp[1]:
            text = timestamp.sql_timestamp(commit_time)
            self._stamp = (commit_time, f',"_committime":"{text}"'.encode())
        return self._stamp[1]
