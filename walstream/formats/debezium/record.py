"""Records of a table in these formats: values, tombstones, keys and headers."""

from collections.abc import Sequence
from typing import ClassVar

from walstream.formats.debezium.envelope import BACKFILL, BESIDE, EnvelopeEncoder
from walstream.formats.debezium.key import DebeziumKey
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.position import Headers, PositionHeaders
from walstream.formats.debezium.row import UnwrappedEncoder
from walstream.formats.debezium.sink_turn import SinkTurn
from walstream.op import ReplicationOp, Table


class DebeziumRecords:
    """Encoder of one table whose records are more than a value."""

    truncates: ClassVar = True

    def __init__(
        self,
        table: Table,
        options: DebeziumOptions,
        turn: SinkTurn,
        *,
        unwrapped: bool = False,
        backfill: bool = False,
    ) -> None:
        """`backfill` says that rows which are no change are read by a backfill's task.

        Else they are read beside the stream.
        """
        snapshot = BACKFILL if backfill else BESIDE
        self._made = self._encoder(table, options, turn, snapshot, unwrapped=unwrapped)
        self._options = options
        self.columns = self._made.columns
        self.texts: frozenset[int] = self.columns.texts
        self._headers = PositionHeaders(options, unwrapped=unwrapped)
        self._key: DebeziumKey | None = None  # with its schema: not made for each op

    def _encoder(
        self,
        table: Table,
        options: DebeziumOptions,
        turn: SinkTurn,
        snapshot: str,
        *,
        unwrapped: bool,
    ) -> EnvelopeEncoder | UnwrappedEncoder:
        """Make what writes the values."""
        if unwrapped:
            return UnwrappedEncoder(table, options, turn, snapshot)
        return EnvelopeEncoder(table, options, turn, snapshot)

    def _key_of(self, indexes: tuple[int, ...]) -> DebeziumKey:
        return DebeziumKey(self.columns, self._options, indexes)

    def key(self, indexes: Sequence[int]) -> DebeziumKey:
        """Return what writes the keys, of these columns: once made, the same."""
        wanted = tuple(indexes)
        if self._key is None or self._key.indexes != wanted:
            self._key = self._key_of(wanted)
        return self._key

    def encode(self, op: ReplicationOp) -> bytes:
        """Write the value of an op's record."""
        return self._made.encode(op)

    def values(self, op: ReplicationOp) -> list[bytes | None]:
        """Return the values of an op's records, in order: None is a tombstone."""
        return self._made.values(op)

    def headers(self, op: ReplicationOp) -> Headers:
        """Return the header that names an op, where its value does not."""
        return self._headers.of(op)


class DebeziumRowRecords(DebeziumRecords):
    """Those of the unwrapped form, which has no record for a TRUNCATE."""

    truncates: ClassVar = False
