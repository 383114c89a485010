"""The format `row`, as the polling of append-only tables sends it, read back.

Each message carries a hash of its data: `verify` tells whether they belong together,
and (name, table, hash) names the message for a filter of duplicates, `consumer.dedupe`.
"""

import hashlib
import json
from dataclasses import dataclass
from datetime import UTC, datetime

from consumer.errors import SchemasAway, SchemasRefused
from consumer.registry import SchemaRegistry
from walstream.errors import WalstreamError
from walstream.formats.encodings.wire import schema_id
from walstream.formats.row import PolledRow, decode, row_hash


class BadMessage(WalstreamError):
    """The bytes are no message of the format `row`."""


@dataclass(frozen=True, slots=True, repr=False)
class RowMessage(PolledRow):
    """One row of a polled table."""

    @classmethod
    def of(
        cls, value: bytes | str, registry: SchemaRegistry | None = None
    ) -> "RowMessage":
        """Read a record's value; raise BadMessage for anything else.

        `registry` has the schemas of records in another encoding than JSON; it may be
        away, or refuse: SchemasAway, SchemasRefused.
        """
        number = schema_id(value) if isinstance(value, bytes) else None
        try:
            if number is None or isinstance(value, str):
                row = decode(value)
            else:
                row = _registered(value, number, registry)
        except (SchemasAway, SchemasRefused):
            raise
        except WalstreamError as error:
            raise BadMessage(str(error)) from None
        return cls(row.timestamp, row.name, row.table, row.data, row.hash)

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp, UTC)

    @property
    def digest(self) -> bytes:
        """16 bytes that stand for (name, table, hash)."""
        named = json.dumps([self.name, self.table, self.hash]).encode()
        return hashlib.sha256(named).digest()[:16]


def _registered(
    value: bytes, number: int, registry: SchemaRegistry | None
) -> PolledRow:
    if registry is None:
        raise WalstreamError(
            "its schema is in a schema registry",
            hint='give a SchemaRegistry({"url": "http://HOST:8081"}) as registry',
        )
    known = registry.schema(number)
    if known.row is None:
        raise WalstreamError("not a row record: another schema")
    return known.row.read(known.reader.read(value))


def verify(message: RowMessage | bytes | str) -> bool:
    """Return whether the hash is that of the data; False if it is not a row message."""
    if not isinstance(message, RowMessage):
        try:
            message = RowMessage.of(message)
        except BadMessage:
            return False
    try:
        return row_hash(message.data) == message.hash
    except RecursionError:  # nested deeper than what walstream writes
        return False
