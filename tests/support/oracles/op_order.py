"""The names (lsn, seq_id) that a stream must carry, and in what order.

Read from a second slot by a counter of its own, which shares no code with walstream: it
looks at tags and counts rows. Only what is asserted of records stands here.
"""

import struct
from collections import defaultdict
from collections.abc import Iterable
from typing import Protocol

from tests.support.fixtures.postgres import Database
from tests.support.oracles.topic_reader import Record

Name = tuple[int, int]


class Named(Protocol):
    """A record, however it was read."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def name(self) -> Name: ...


class OracleSlot:
    """A pgoutput slot of its own, beside walstream's, on the same publication."""

    def __init__(self, database: Database, publication: str = "walstream") -> None:
        self._database = database
        self._publication = publication
        self._name = f"oracle_{database.name}"
        database.fetch(
            "SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", self._name
        )
        self._names: list[Name] = []

    def names(self) -> list[Name]:
        """List the names of all that was committed since the slot was made."""
        rows = self._database.fetch(
            "SELECT data FROM pg_logical_slot_get_binary_changes(%s, NULL, NULL,"
            " 'proto_version', '1', 'publication_names', %s)",
            self._name,
            self._publication,
        )
        lsn = sequence = 0
        for (payload,) in rows:
            tag = payload[:1]
            if tag == b"B":
                (lsn,) = struct.unpack_from("!Q", payload, 1)
                sequence = 0
            for _ in range(_numbers(payload)):
                self._names.append((lsn, sequence))
                sequence += 1
        return self._names


def _numbers(payload: bytes) -> int:
    """Count the numbers that a message takes; two for an update with an old key."""
    tag = payload[:1]
    if tag == b"U":
        return 2 if payload[5:6] == b"K" else 1
    return 1 if tag in (b"I", b"D") else 0


def assert_rewind_and_continue(records: Iterable[Named]) -> int:
    """Claim that each partition only ever continues, or rewinds and then repeats.

    Gives the number of repeated records.
    """
    partitions: dict[tuple[str, int], list[Name]] = defaultdict(list)
    for record in records:
        partitions[record.topic, record.partition].append(record.name)
    repeats = 0
    for where, names in partitions.items():
        order: dict[Name, int] = {}
        last = -1
        highest = (-1, -1)
        for name in names:
            index = order.get(name)
            if index is None:
                index = len(order)
                assert name > highest, (where, name, highest)
                assert last == index - 1, (where, "a gap in a replay", name)
                order[name] = index
                highest = name
            else:
                repeats += 1
                assert index <= last + 1, (where, "a replay left something out", name)
            last = index
    return repeats


def missing(expected: Iterable[Name], records: Iterable[Named]) -> list[Name]:
    """List the names that no record carries."""
    return sorted(set(expected) - {record.name for record in records})


def foreign(expected: Iterable[Name], records: Iterable[Named]) -> list[Name]:
    """List the names that records carry and nobody committed."""
    return sorted({record.name for record in records} - set(expected))


def distinct(wanted: int, records: Iterable[Record]) -> bool:
    """Tell whether so many different names are there, repeats or not."""
    return len({record.name for record in records}) == wanted


def more_than(seen: int, records: list[Record]) -> bool:
    return len(records) > seen
