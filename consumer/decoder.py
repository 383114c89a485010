"""Kafka's messages as records, and as ops: of the format `op`, or of Debezium's."""

from typing import Any, Final

from consumer.group.assigned_partition import Place
from consumer.op import ConsumerRecord, EnvelopeOp, Op
from walstream.errors import WalstreamError
from walstream.formats.debezium.decode import EnvelopeDecoder
from walstream.formats.debezium.options import UNAVAILABLE
from walstream.formats.op import decode

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

    def __init__(self, unavailable: str = UNAVAILABLE) -> None:
        """`unavailable`: what stands in envelopes for an unchanged TOAST value."""
        self._envelopes = EnvelopeDecoder(unavailable)

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
        try:
            return self._envelope_of(value, record)
        except WalstreamError as error:
            try:
                return Op(decode(value), record)
            except WalstreamError as other:
                raise WalstreamError(f"{other.args[0]}, and {error.args[0]}") from None

    def _envelope_of(self, value: bytes, record: ConsumerRecord) -> EnvelopeOp | None:
        headers = {name: text for name, text in record.headers if text is not None}
        found = self._envelopes.read(value, record.key, headers)
        return None if found is None else EnvelopeOp.read(found, record)


def source_of(record: ConsumerRecord) -> str | None:
    """Return the source that a producer's first record in a partition names."""
    for name, value in record.headers:
        if name == _SOURCE_HEADER and value is not None:
            return value.decode(errors="replace")
    return None
