"""The field `source` in protobuf, in parts that a transaction's rows share."""

from typing import Final

from walstream.formats.debezium.options import CONNECTOR, DebeziumOptions
from walstream.formats.debezium.source_block import SOURCE, unix_micros
from walstream.formats.encodings.protobuf import primitive
from walstream.formats.encodings.protobuf.message import ProtoMessage
from walstream.formats.encodings.protobuf.plan import StructPlan
from walstream.formats.encodings.protobuf.primitive import text, varint
from walstream.lsn import Lsn

_SEQUENCE: Final = "sequence"
_LSN: Final = "lsn"


class ProtoSource:
    """Writes the block of one table."""

    def __init__(
        self,
        options: DebeziumOptions,
        names: tuple[str, str],
        snapshot: str,
        message: ProtoMessage,
    ) -> None:
        """`names` are the table's schema and name; `message` has the numbers."""
        plans = StructPlan(SOURCE, message, []).fields
        self._plans = {plan.name: plan for plan in plans}
        self._places = {plan.name: place for place, plan in enumerate(plans)}
        self._sequence_first = self._places[_SEQUENCE] < self._places[_LSN]
        parts = [b""] * len(plans)
        self._put(parts, "version", text(options.version))
        self._put(parts, "connector", text(CONNECTOR))
        self._put(parts, "name", text(options.name))
        self._put(parts, "db", text(options.database))
        self._put(parts, "schema", text(names[0]))
        self._put(parts, "table", text(names[1]))
        self._constant = parts
        self._snapshot = text(snapshot)
        self._sequence_tag = self._plans[_SEQUENCE].tag
        self._lsn_tag = self._plans[_LSN].tag
        self._before = self._between = self._behind = b""
        self._opening = b""

    def start(
        self, times: tuple[int, Lsn], xid: int | None, origin: tuple[str, Lsn]
    ) -> None:
        """Take what the rows of a transaction share: its time, and its LSN."""
        commit_time, lsn = times
        parts = self._timed(commit_time)
        self._put(parts, "snapshot", text("false"))
        if xid is not None:
            self._put(parts, "txId", varint(xid))
        name, origin_lsn = origin
        if name:
            self._put(parts, "origin", text(name))
            self._put(parts, "origin_lsn", varint(origin_lsn))
        one, other = sorted((self._places[_SEQUENCE], self._places[_LSN]))
        self._before = b"".join(parts[:one])
        self._between = b"".join(parts[one + 1 : other])
        self._behind = b"".join(parts[other + 1 :])
        self._opening = f'["{lsn}","'.encode()

    def row(self, lsn: Lsn) -> bytes:
        """Return the block of a row of that transaction, without its length."""
        shown = self._opening + str(lsn).encode() + b'"]'
        first = self._sequence_tag + primitive.raw(shown)
        second = self._lsn_tag + varint(lsn)
        if not self._sequence_first:
            first, second = second, first
        return self._before + first + self._between + second + self._behind

    def snapshot(self, read_time: int, lsn: Lsn, *, whole: bool) -> bytes:
        """Return the block of a row that was read, with its LSN if it is `whole`."""
        parts = self._timed(read_time)
        self._put(parts, "snapshot", self._snapshot)
        self._put(parts, _SEQUENCE, text(f'[null,"{lsn}"]'))
        if whole:
            self._put(parts, _LSN, varint(lsn))
        return b"".join(parts)

    def _timed(self, time: int) -> list[bytes]:
        parts = self._constant.copy()
        micros = unix_micros(time)
        self._put(parts, "ts_ms", varint(micros // 1000))
        self._put(parts, "ts_us", varint(micros))
        self._put(parts, "ts_ns", varint(micros * 1000))
        return parts

    def _put(self, parts: list[bytes], name: str, written: bytes) -> None:
        parts[self._places[name]] = self._plans[name].of(written)
