"""Records of a table in JSON behind the ids of their schemas."""

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from walstream.errors import WalstreamError
from walstream.formats.debezium.columns import TableColumns
from walstream.formats.debezium.envelope import BESIDE, EnvelopeEncoder
from walstream.formats.debezium.key import DebeziumKey
from walstream.formats.debezium.options import DebeziumOptions
from walstream.formats.debezium.position import PositionHeaders
from walstream.formats.debezium.record import DebeziumRecords
from walstream.formats.debezium.row import UnwrappedEncoder
from walstream.formats.debezium.sink_turn import SinkTurn
from walstream.formats.encodings.json_schema.schema_text import json_schema
from walstream.formats.encodings.subject import Framed
from walstream.op import ReplicationOp, Table


class JsonSchemaEnvelope(EnvelopeEncoder):
    """The envelope of one change."""

    def __init__(
        self,
        table: Table,
        options: DebeziumOptions,
        turn: SinkTurn,
        snapshot: str = BESIDE,
    ) -> None:
        """`snapshot` says of rows that are no change how they were read."""
        super().__init__(table, options, turn, snapshot)
        self.schema_text = json_schema(self.schema)
        self.head = b""
        """What stands before each record: the id that a registry gives to the text."""

    def encode(self, op: ReplicationOp) -> bytes:
        """Write one op of this encoder's table."""
        return self.head + super().encode(op)


class JsonSchemaRow(UnwrappedEncoder):
    """The row alone."""

    def __init__(
        self,
        table: Table,
        options: DebeziumOptions,
        turn: SinkTurn,
        snapshot: str = BESIDE,
    ) -> None:
        """`snapshot` says of rows that are no change how they were read."""
        super().__init__(table, options, turn, snapshot)
        self.schema_text = json_schema(self.schema)
        self.head = b""
        """What stands before each record: the id that a registry gives to the text."""

    def encode(self, op: ReplicationOp) -> bytes:
        """Write the row of one op: the old one of a Delete."""
        return self.head + super().encode(op)


class JsonSchemaKey(DebeziumKey):
    """Writes the keys of one table; headers have them as Connect writes those."""

    def __init__(
        self, columns: TableColumns, options: DebeziumOptions, indexes: Sequence[int]
    ) -> None:
        super().__init__(columns, options, indexes)
        self.schema_text = json_schema(self.schema)
        self.head = b""
        """What stands before each key: the id that a registry gives to the text."""

    def render(self, op: ReplicationOp) -> bytes | None:
        """Write the key of an op's record: of its new row, or of a deleted one."""
        found = super().render(op)
        return None if found is None else self.head + found


class JsonSchemaRecords(DebeziumRecords):
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
        options = replace(options, validated=True, schemas=False)
        super().__init__(table, options, turn, unwrapped=unwrapped, backfill=backfill)
        # who looks at a partition's end does not take the id off
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
            return JsonSchemaRow(table, options, turn, snapshot)
        return JsonSchemaEnvelope(table, options, turn, snapshot)

    def _key_of(self, indexes: tuple[int, ...]) -> DebeziumKey:
        return JsonSchemaKey(self.columns, self._options, indexes)

    def framed(self, key: Sequence[int]) -> list[tuple[bool, Framed]]:
        """Return what writes values and keys of these columns, keys with True."""
        made, writer = self._made, self.key(key)
        if not isinstance(made, JsonSchemaEnvelope | JsonSchemaRow):
            raise WalstreamError("records of a JSON Schema without a writer: a defect")
        parts: list[tuple[bool, Framed]] = [(False, made)]
        if key and isinstance(writer, JsonSchemaKey):
            parts.append((True, writer))
        return parts


class JsonSchemaRowRecords(JsonSchemaRecords):
    """Those of the unwrapped form, which has no record for a TRUNCATE."""

    truncates: ClassVar = False
