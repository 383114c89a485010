"""Records of one schema in protobuf, made of their JSON: those that are rare."""

from typing import Any

from walstream.errors import WalstreamError
from walstream.formats.debezium.connect import Schema
from walstream.formats.encodings.protobuf.plan import StructPlan
from walstream.formats.encodings.protobuf.schema_reader import parsed_proto
from walstream.formats.encodings.protobuf.shape import proto_shape


class ProtoDocument:
    """Writes records, or keys, of one schema."""

    def __init__(self, schema: Schema) -> None:
        """Raise ConfigError for the name of a field that protobuf does not allow."""
        self.schema = schema
        self.schema_text = proto_shape(schema).text()
        self.head = b""
        """What stands before each record: the id that a registry gives to the text."""
        self._registered = ""
        self._plan: StructPlan | None = None

    def use(self, registered: str) -> None:
        """Write records by this text, which the registry has."""
        if registered != self._registered:
            message = parsed_proto(registered).first
            self._plan = StructPlan(self.schema, message, [])
            self._registered = registered

    def write(self, payload: bytes) -> bytes:
        """Write a record whose JSON this is; raise ValueError for another type's."""
        if self._plan is None:
            raise WalstreamError("records in protobuf without numbers: a defect")
        return self.head + self._plan.document(payload)

    def write_value(self, value: Any) -> bytes:
        """Write a record of the schema, as JSON has it."""
        if self._plan is None:
            raise WalstreamError("records in protobuf without numbers: a defect")
        return self.head + self._plan.body(value)
