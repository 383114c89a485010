"""Kafka's messages as records and ops."""

from typing import Any, Final

from consumer.group.assigned_partition import Place
from consumer.op import ConsumerRecord, Op
from walstream.formats.op import decode

_SOURCE_HEADER: Final = "walstream-source"


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


def op_of(record: ConsumerRecord) -> Op:
    """Decode a record's value; raise WalstreamError if it is not an op."""
    return Op(decode(record.value or b""), record)


def source_of(record: ConsumerRecord) -> str | None:
    """Return the source that a producer's first record in a partition names."""
    for name, value in record.headers:
        if name == _SOURCE_HEADER and value is not None:
            return value.decode(errors="replace")
    return None
