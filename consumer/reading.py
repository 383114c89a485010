"""Kafka's messages as records and ops."""

from typing import Final, cast

from confluent_kafka import Message

from consumer.op import Op, Record
from walstream.formats.op import decode

_SOURCE_HEADER: Final = "walstream-source"


def record_of(message: Message) -> Record:
    """Read a message that is no error: of such a one nothing but key, value is None."""
    headers = message.headers()
    return Record(
        cast("str", message.topic()),
        cast("int", message.partition()),
        cast("int", message.offset()),
        message.key(),
        message.value(),
        message.timestamp()[1],
        tuple(cast("list[tuple[str, bytes | None]]", headers)) if headers else (),
    )


def op_of(record: Record) -> Op:
    """Decode a record's value; raise WalstreamError for what is no op."""
    return Op.of(decode(record.value or b""), record)


def source_of(record: Record) -> str | None:
    """Give the source that a producer's first record in a partition names."""
    for name, value in record.headers:
        if name == _SOURCE_HEADER and value is not None:
            return value.decode(errors="replace")
    return None
