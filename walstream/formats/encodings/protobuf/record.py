"""Records of a table in protobuf: what `DebeziumRecords` makes in JSON."""

from collections.abc import Sequence
from typing import ClassVar

from walstream.errors import WalstreamError
from walstream.formats.debezium.envelope import EnvelopeEncoder
from walstream.formats.debezium.key import DebeziumKey
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.position import PositionHeaders
from walstream.formats.debezium.record import DebeziumRecords
from walstream.formats.debezium.row import UnwrappedEncoder
from walstream.formats.debezium.sink_turn import SinkTurn
from walstream.formats.encodings.protobuf.envelope import ProtoEnvelope
from walstream.formats.encodings.protobuf.key import ProtoKey
from walstream.formats.encodings.protobuf.row import ProtoRow
from walstream.formats.encodings.subject import Framed
from walstream.op import Table


class ProtoRecords(DebeziumRecords):
    """Encoder of one table; its parts carry a schema's id, once it is `set`."""

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
        """All is what `DebeziumRecords` takes."""
        super().__init__(table, options, turn, unwrapped=unwrapped, backfill=backfill)
        self.texts = frozenset()  # nothing can be put into protobuf afterwards
        # without its schema no field of a record can be read
        self._headers = PositionHeaders(options, unwrapped=True)

    def _encoder(
        self,
        table: Table,
        options: DebeziumOptions,
        turn: SinkTurn,
        snapshot: str,
        *,
        unwrapped: bool,
    ) -> EnvelopeEncoder | UnwrappedEncoder:
        if unwrapped:
            return ProtoRow(table, options, turn, snapshot)
        return ProtoEnvelope(table, options, turn, snapshot)

    def _key_of(self, indexes: tuple[int, ...]) -> DebeziumKey:
        return ProtoKey(self.columns, self._options, indexes)

    @property
    def _value_writer(self) -> ProtoEnvelope | ProtoRow:
        made = self._made
        if not isinstance(made, ProtoEnvelope | ProtoRow):
            raise WalstreamError("records in protobuf without their writer: a defect")
        return made

    def framed(self, key: Sequence[int]) -> list[tuple[bool, Framed]]:
        """Return what writes values and keys of these columns, keys with True."""
        parts: list[tuple[bool, Framed]] = [(False, self._value_writer)]
        writer = self.key(key)
        if key and isinstance(writer, ProtoKey):
            parts.append((True, writer))
        return parts


class ProtoRowRecords(ProtoRecords):
    """Those of the unwrapped form, which has no record for a TRUNCATE."""

    truncates: ClassVar = False
