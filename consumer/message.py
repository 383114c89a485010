"""The format `row`, as the polling of append-only tables sends it, read back.

Each message carries a hash of its data: `verify` tells whether they belong together,
and (name, table, hash) names the message for a filter of duplicates (`consumer.seen`).
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from walstream.errors import WalstreamError


class BadMessage(WalstreamError):
    """The bytes are no message of the format `row`."""


@dataclass(frozen=True, slots=True)
class RowMessage:
    """One row of a polled table."""

    timestamp: float  # seconds since 1970, when walstream made the message
    name: str  # of the configured source
    table: str
    data: Mapping[str, Any]  # JSON values, in the order of the SELECT
    hash: str  # SHA-256 in hex

    @classmethod
    def of(cls, value: bytes | str) -> "RowMessage":
        """Read a record's value; raise BadMessage for anything else."""
        try:
            fields = json.loads(value)
            message = cls(
                timestamp=float(fields["timestamp"]),
                name=fields["name"],
                table=fields["table"],
                data=fields["data"],
                hash=fields["hash"],
            )
        except (KeyError, TypeError, ValueError, RecursionError) as error:
            reason = type(error).__name__
        else:
            texts = (message.name, message.table, message.hash)
            if isinstance(message.data, dict) and all(type(t) is str for t in texts):
                return message
            reason = "a field of another type"
        raise BadMessage(f"no row message: {reason}")

    @property
    def time(self) -> datetime:
        return datetime.fromtimestamp(self.timestamp, UTC)

    @property
    def digest(self) -> bytes:
        """16 bytes that stand for (name, table, hash)."""
        named = json.dumps([self.name, self.table, self.hash]).encode()
        return hashlib.sha256(named).digest()[:16]

    def __repr__(self) -> str:
        """Name the message; its data belong in no log."""
        return f"<row of {self.name}, table {self.table}, hash {self.hash}>"


def row_hash(data: Mapping[str, Any]) -> str:
    """Hash a message's data: SHA-256 over JSON with sorted keys, in hex."""
    text = json.dumps(data, sort_keys=True, separators=(", ", ": "), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def verify(message: RowMessage | bytes | str) -> bool:
    """Tell whether the hash is that of the data; false for what is no row message."""
    if not isinstance(message, RowMessage):
        try:
            message = RowMessage.of(message)
        except BadMessage:
            return False
    return row_hash(message.data) == message.hash
