"""A record that is ready to be sent: made by a handler, or of no row at all."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from walstream.formats.debezium.connect import Schema


@dataclass(frozen=True, slots=True)
class ProducerRecord:
    """A finished record: no other handler sees it.

    Without a key, its table decides its partition: they keep their order all the same.
    """

    key: bytes | None
    value: bytes | None  # None: a tombstone
    topic: str | None = None  # None: its op's
    headers: Sequence[tuple[str, bytes | None]] = ()
    timestamp: int | None = None  # in Unix milliseconds; None: the commit's
    partition: int | None = None  # None: as its key says


@dataclass(frozen=True, slots=True)
class SchemaRecord(ProducerRecord):
    """A finished record in JSON that tells the schemas of key and value."""

    schemas: "tuple[Schema, Schema] | None" = None
