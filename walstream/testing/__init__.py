"""Test doubles: a slot and a Kafka in memory, and their faults.

Shipped, so that an application can test its own use of walstream. No server, no clock.
"""

from walstream.testing.faults import (
    FailAfterWrite,
    Faulty,
    HoldResponse,
    Reject,
    faulty,
)
from walstream.testing.memory import MemoryCompanion, MemorySource, MemoryStore
from walstream.testing.sink import Delivery, MemorySink, SinkRecord
from walstream.testing.wire import encode, keepalive, transaction, wal_data

__all__ = [
    "Delivery",
    "FailAfterWrite",
    "Faulty",
    "HoldResponse",
    "MemoryCompanion",
    "MemorySink",
    "MemorySource",
    "MemoryStore",
    "Reject",
    "SinkRecord",
    "encode",
    "faulty",
    "keepalive",
    "transaction",
    "wal_data",
]
