"""The field `source` in Avro, in heads that a transaction's rows share."""

from typing import Final

from walstream.formats.debezium.options import CONNECTOR, DebeziumOptions
from walstream.formats.debezium.source_block import unix_micros
from walstream.formats.encodings.avro.primitive import (
    NULL,
    TURNED_VALUE,
    VALUE,
    long,
    text,
)
from walstream.lsn import Lsn

_NULLS: Final = NULL + NULL


class AvroSource:
    """Writes the block of one table."""

    def __init__(
        self, options: DebeziumOptions, schema: str, table: str, snapshot: str
    ) -> None:
        about = (options.version, CONNECTOR, options.name)
        self._about = b"".join(map(text, about))
        behind = text(options.database) + VALUE
        self._streamed = TURNED_VALUE + text("false") + behind
        self._read = TURNED_VALUE + text(snapshot) + behind
        self._table = text(schema) + text(table)

    def stream(self, commit_time: int, xid: int | None) -> tuple[bytes, bytes]:
        """Return what stands before the sequence, and between it and a row's LSN."""
        number = NULL if xid is None else VALUE + long(xid)
        head = self._head(commit_time, self._streamed)
        return head, self._rest(commit_time) + number + VALUE

    def snapshot(self, read_time: int, lsn: Lsn, *, whole: bool) -> bytes:
        """Return the block of a row that was read, with its LSN if it is `whole`."""
        shown = VALUE + long(lsn) if whole else NULL
        sequence = text(f'[null,"{lsn}"]')
        head = self._head(read_time, self._read) + sequence
        return head + self._rest(read_time) + NULL + shown + NULL + _NULLS

    def _head(self, time: int, behind: bytes) -> bytes:
        return self._about + long(unix_micros(time) // 1000) + behind

    def _rest(self, time: int) -> bytes:
        micros = unix_micros(time)
        return VALUE + long(micros) + VALUE + long(micros * 1000) + self._table


def origin(name: str, lsn: Lsn) -> bytes:
    """Return the fields of a transaction's origin; "": this server is it."""
    return VALUE + text(name) + VALUE + long(lsn) if name else _NULLS
