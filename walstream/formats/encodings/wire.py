"""Confluent's wire format: before a record's data stands the id of its schema."""

from typing import Final

_MAGIC: Final = b"\0"
HEAD: Final = 5  # bytes: the magic one, and the id
FIRST_MESSAGE: Final = b"\0"  # of protobuf: which message of its schema a record is


def head(number: int) -> bytes:
    """Return what stands before a record."""
    return _MAGIC + number.to_bytes(4, "big")


def schema_id(record: bytes | None) -> int | None:
    """Return the id in a record's head; None: it has none."""
    if record is None or len(record) < HEAD or record[:1] != _MAGIC:
        return None
    return int.from_bytes(record[1:HEAD], "big")
