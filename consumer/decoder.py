"""Kafka's messages as records, and as ops: of the format `op`, or of Debezium's."""

from typing import Any, Final

import orjson

from consumer.group.assigned_partition import Place
from consumer.op import ConsumerRecord, EnvelopeOp, Op, RegisteredOp
from consumer.registry import KnownSchema, SchemaRegistry
from walstream.errors import WalstreamError
from walstream.formats.debezium.decode import EnvelopeDecoder, key_names
from walstream.formats.debezium.options import UNAVAILABLE
from walstream.formats.encodings.wire import schema_id
from walstream.formats.op import OpEncoder, decode
from walstream.formats.row import written

_SOURCE_HEADER: Final = "walstream-source"
_OP: Final = b'{"table_name":'  # how walstream begins one


def record_of(message: Any, place: Place) -> ConsumerRecord:
    """Read a partition's message, which must not be an error."""
    # Any: of an error nearly everything may be None; and each call costs, also the
    # one of a NamedTuple's own constructor
    headers = message.headers()
    return tuple.__new__(
        ConsumerRecord,
        (
            place[0],
            place[1],
            message.offset(),
            message.key(),
            message.value(),
            message.timestamp()[1],
            tuple(headers) if headers else (),
        ),
    )


class Decoder:
    """Reads records as ops; their shape tells which of the formats they have."""

    def __init__(
        self, unavailable: str = UNAVAILABLE, registry: SchemaRegistry | None = None
    ) -> None:
        """`unavailable`: what stands in envelopes for an unchanged TOAST value."""
        self._envelopes = EnvelopeDecoder(unavailable)
        self._registry = registry

    def op_of(self, record: ConsumerRecord) -> Op | None:
        """Decode a record's value; raise WalstreamError for one of another format.

        None: there is no op in it, but a tombstone, a logical message, BEGIN or END of
        a transaction, or a heartbeat.
        """
        value = record.value
        if value is None:
            return None
        if value.startswith(_OP):
            return Op(decode(value), record)
        number = schema_id(value)
        if number is not None:
            return self._registered_op(value, number, record)
        try:
            return self._envelope_of(value, record)
        except WalstreamError as error:
            try:
                return Op(decode(value), record)
            except WalstreamError as other:
                raise WalstreamError(f"{other.args[0]}, and {error.args[0]}") from None

    def _envelope_of(self, value: bytes, record: ConsumerRecord) -> EnvelopeOp | None:
        found = self._envelopes.read(value, record.key, _headers(record))
        return None if found is None else EnvelopeOp.read(found, record)

    def _registered_op(
        self, value: bytes, number: int, record: ConsumerRecord
    ) -> Op | None:
        known = self._known(number)
        names = self._key_names(record.key)
        document = known.reader.read(value)
        if known.op is not None:
            op = known.op.read(document, known.op.key_columns(names))
            return RegisteredOp(op, record, has_units=known.op.has_units)
        if known.row is not None:
            raise WalstreamError("a polled row, and no op")
        found = self._envelopes.read_document(
            document, known.columns, names, _headers(record)
        )
        return None if found is None else EnvelopeOp.read(found, record)

    def _known(self, number: int) -> KnownSchema:
        if self._registry is None:
            raise WalstreamError(
                "its schema is in a schema registry",
                hint='set registry={"url": "http://HOST:8081"}',
            )
        return self._registry.schema(number)

    def _key_names(self, key: bytes | None) -> tuple[str, ...]:
        number = schema_id(key)
        return key_names(key) if number is None else self._known(number).reader.names

    def as_json(self, record: ConsumerRecord, *, named: bool = False) -> ConsumerRecord:
        """Return a record of a registry's schema as JSON; any other as it is.

        With `named`, the value has its schema's name, as Connect's converter has it. Of
        the formats `op` and `row` it is that format's own.
        Raises what `op_of` raises.
        """
        return record._replace(
            key=self._json(record.key, named=False),
            value=self._json(record.value, named=named),
        )

    def _json(self, data: bytes | None, *, named: bool) -> bytes | None:
        number = schema_id(data)
        if data is None or number is None:
            return data
        reader, _, op, row = self._known(number)
        document = reader.read(data)
        if op is not None:
            found = op.read(document)
            return OpEncoder(found.table).encode(found)
        if row is not None:
            return written(row.read(document))
        if named:
            schema = {"name": reader.schema.get("name", "")}
            document = {"schema": schema, "payload": document}
        return orjson.dumps(document)


def _headers(record: ConsumerRecord) -> dict[str, bytes]:
    return {name: text for name, text in record.headers if text is not None}


def source_of(record: ConsumerRecord) -> str | None:
    """Return the source that a producer's first record in a partition names."""
    for name, value in record.headers:
        if name == _SOURCE_HEADER and value is not None:
            return value.decode(errors="replace")
    return None
