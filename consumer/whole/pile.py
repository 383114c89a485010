"""Ops of open transactions, each once, until they are handled: in memory, then on disk.

An op of a partition may come again, at any place behind. So all names of a transaction
that is open are kept, not the highest alone.
"""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

import orjson

from consumer.group.assigned_partition import Place
from consumer.op import ConsumerRecord, Op
from consumer.whole.transaction import Ops
from walstream.errors import WalstreamError
from walstream.lsn import Lsn

_OVERHEAD: Final = 700  # bytes of an op and its record as objects
_TABLE: Final = """
CREATE TABLE op (lsn TEXT, seq_id INTEGER, topic TEXT, partition INTEGER,
  "offset" INTEGER, key BLOB, value BLOB, timestamp INTEGER, headers BLOB,
  PRIMARY KEY (lsn, seq_id, topic, partition)) WITHOUT ROWID
"""
_ADD: Final = "INSERT OR IGNORE INTO op VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_READ: Final = """
SELECT topic, partition, "offset", key, value, timestamp, headers, seq_id
  FROM op WHERE lsn = ? ORDER BY seq_id
"""
_HAS: Final = "SELECT 1 FROM op WHERE lsn = ? AND seq_id = ? LIMIT 1"
_COUNT: Final = "SELECT count(DISTINCT seq_id) FROM op WHERE lsn = ?"
_FORGET: Final = "DELETE FROM op WHERE lsn = ?"

Decode = Callable[[ConsumerRecord], Op | None]


def size(op: Op) -> int:
    """Return about how many bytes of memory an op takes."""
    record = op.record
    return _OVERHEAD + 2 * len(record.value or b"") + len(record.key or b"")


class Disk:
    """A file without a name, in the folder of temporary files; it goes with us."""

    def __init__(self, decode: Decode) -> None:
        self._decode = decode
        self._opened: sqlite3.Connection | None = None

    def add(self, op: Op) -> bool:
        """Keep an op; False: it is there."""
        record = op.record
        headers = [
            (name, None if text is None else text.hex())
            for name, text in record.headers
        ]
        values = (
            str(op.lsn),
            op.seq_id,
            record.topic,
            record.partition,
            record.offset,
            record.key,
            record.value,
            record.timestamp_ms,
            orjson.dumps(headers),
        )
        return self._run(_ADD, values).rowcount == 1

    def read(self, lsn: Lsn) -> Iterator[Op]:
        """Yield a transaction's ops in order, one that several partitions have once."""
        last = None
        for row in self._run(_READ, (str(lsn),)):
            topic, number, offset, key, value, timestamp, headers, seq_id = row
            if seq_id == last:
                continue
            last = seq_id
            read = tuple(
                (name, None if text is None else bytes.fromhex(text))
                for name, text in orjson.loads(headers)
            )
            record = ConsumerRecord(topic, number, offset, key, value, timestamp, read)
            op = self._decode(record)
            if op is not None:
                yield op

    def has(self, lsn: Lsn, seq_id: int) -> bool:
        """Return whether some partition had the op."""
        return self._run(_HAS, (str(lsn), seq_id)).fetchone() is not None

    def count(self, lsn: Lsn) -> int:
        """Return how many ops `read` yields."""
        (number,) = self._run(_COUNT, (str(lsn),)).fetchone()
        return int(number)

    def forget(self, lsn: Lsn) -> None:
        self._run(_FORGET, (str(lsn),))

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()
            self._opened = None

    def _run(self, statement: str, values: tuple[Any, ...]) -> sqlite3.Cursor:
        try:
            if self._opened is None:
                self._opened = sqlite3.connect("", isolation_level=None)
                self._opened.execute("PRAGMA journal_mode = OFF")
                self._opened.execute("PRAGMA synchronous = OFF")
                self._opened.execute(_TABLE)
            return self._opened.execute(statement, values)
        except sqlite3.Error as error:
            raise WalstreamError(
                "a large transaction cannot be kept on disk until it is whole:"
                f" {error}",
                hint="give the folder of temporary files (SQLITE_TMPDIR, or TMPDIR)"
                " more room than the largest transaction has, or raise memory=",
            ) from None


class SpilledOps:
    """Those of a transaction that lies on disk."""

    def __init__(self, disk: Disk, lsn: Lsn) -> None:
        self._disk, self._lsn = disk, lsn
        self._count = disk.count(lsn)

    def __iter__(self) -> Iterator[Op]:
        return self._disk.read(self._lsn)

    def __len__(self) -> int:
        return self._count


class Pile:
    """The ops of one open transaction that were read."""

    def __init__(self, lsn: Lsn, disk: Disk) -> None:
        self.lsn = lsn
        self.bytes = 0  # in memory
        self.kept = 0  # and on disk
        self.counts: Counter[Place] = Counter()  # of names, by partition
        self.records = 0  # of its ops once each, whichever partition they came from
        self._names: set[int] = set()  # of those in memory
        self._ops: dict[tuple[int, Place], Op] | None = {}
        self._disk = disk

    def add(self, place: Place, op: Op) -> None:
        """Take an op in, unless this partition had it."""
        seq_id = op.seq_id
        if self._ops is None:
            is_new = not self._disk.has(self.lsn, seq_id)
            if not self._disk.add(op):
                return
        else:
            is_new = seq_id not in self._names
            if (seq_id, place) in self._ops:
                return
            self._ops[seq_id, place] = op
            self._names.add(seq_id)
            self.bytes += size(op)
        self.kept += size(op)
        self.counts[place] += 1
        # a Truncate once in each partition, as it is counted: how many these are, two
        # runs of the source may have found differently
        self.records += is_new or op.partitions > 0

    def spill(self) -> None:
        """Move what is in memory to disk; what comes follows it."""
        ops, self._ops = self._ops or {}, None
        for op in ops.values():
            self._disk.add(op)
        self._names.clear()
        self.bytes = 0

    def ops(self) -> Ops:
        """Return them in order: one that several partitions have, once."""
        if self._ops is None:
            return SpilledOps(self._disk, self.lsn)
        once = {seq_id: self._ops[seq_id, at] for seq_id, at in sorted(self._ops)}
        return tuple(once.values())

    def forget(self) -> None:
        if self._ops is None:
            self._disk.forget(self.lsn)


class Piles:
    """All open transactions; above `memory` bytes, the largest go to disk."""

    def __init__(self, memory: int, decode: Decode) -> None:
        self._memory = memory
        self._disk = Disk(decode)
        self._open: dict[Lsn, Pile] = {}
        self.bytes = 0  # in memory
        self.kept = 0  # and on disk

    def add(self, place: Place, op: Op) -> None:
        pile = self._open.get(op.lsn)
        if pile is None:
            pile = self._open[op.lsn] = Pile(op.lsn, self._disk)
        before, kept = pile.bytes, pile.kept
        pile.add(place, op)
        self.bytes += pile.bytes - before
        self.kept += pile.kept - kept
        if self.bytes > self._memory:
            self._spill()

    def _spill(self) -> None:
        """Make room, and some more, so that it is not to be looked for each time."""
        for largest in sorted(self._open.values(), key=lambda one: -one.bytes):
            if self.bytes <= self._memory // 2:
                return
            self.bytes -= largest.bytes
            largest.spill()

    def get(self, lsn: Lsn) -> Pile | None:
        return self._open.get(lsn)

    def pop(self, lsn: Lsn) -> Pile | None:
        """Take one out, which is forgotten."""
        pile = self._open.pop(lsn, None)
        if pile is not None:
            self.bytes -= pile.bytes
            self.kept -= pile.kept
            pile.forget()
        return pile

    @property
    def lsns(self) -> tuple[Lsn, ...]:
        return tuple(self._open)

    def close(self) -> None:
        self._open.clear()
        self._disk.close()
