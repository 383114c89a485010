"""Which `row` messages were handled already, by (name, table, hash).

    if message not in seen:
        handle(message)
        seen.add(message)

Added after it was handled, so that a crash in between repeats a message and loses none;
with SeenInPostgres both commit together, which is exactly once. Each filter forgets:
what comes again after its bound is taken for new.
"""

import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

import psycopg

from consumer.message import RowMessage

_DAY_S: Final = 86_400.0
_WEEK_S: Final = 7 * _DAY_S
_STAMP_BYTES: Final = 8


class Seen(Protocol):
    """A filter of duplicates."""

    def __contains__(self, message: RowMessage, /) -> bool: ...

    def add(self, *messages: RowMessage) -> None: ...


class SeenInMemory:
    """A set of the last `limit` messages: about 110 bytes each, gone with the process.

    The default holds a million, 110 MB.
    """

    def __init__(self, limit: int = 1_000_000) -> None:
        if limit < 1:
            raise ValueError("limit is at least 1")
        self._limit = limit
        self._digests: set[bytes] = set()
        self._order: deque[bytes] = deque()

    def __contains__(self, message: RowMessage) -> bool:
        return message.digest in self._digests

    def add(self, *messages: RowMessage) -> None:
        for message in messages:
            digest = message.digest
            if digest in self._digests:
                continue
            if len(self._order) == self._limit:
                self._digests.discard(self._order.popleft())
            self._digests.add(digest)
            self._order.append(digest)

    def __len__(self) -> int:
        return len(self._order)


class SeenInLmdb:
    """A folder with an LMDB of the messages of the last `max_age_s` (a week).

    It holds at most `limit` messages (ten million), about 100 bytes of disk each; the
    oldest give way. `add` is one transaction with an fsync: give it many at once. One
    process at a time writes.
    """

    def __init__(
        self,
        folder: Path | str,
        *,
        max_age_s: float = _WEEK_S,
        limit: int = 10_000_000,
        clock: Callable[[], float] = time.time,
    ) -> None:
        import lmdb  # noqa: PLC0415 - an application without this filter needs none

        self._max_age_s = max_age_s
        self._limit = limit
        self._clock = clock
        # room for both copies of each entry, and for the pages that are being freed
        size = max(1 << 24, limit * 400)
        self._environment = lmdb.open(str(folder), map_size=size, max_dbs=2)
        self._stamps = self._environment.open_db(b"stamps")  # digest -> when
        self._order = self._environment.open_db(b"order")  # when + digest

    def __contains__(self, message: RowMessage) -> bool:
        with self._environment.begin(db=self._stamps) as transaction:
            stamp = transaction.get(message.digest)
        return stamp is not None and stamp >= self._oldest()

    def add(self, *messages: RowMessage) -> None:
        """Keep these; on disk when it returns."""
        stamp = self._stamp(self._clock())
        with self._environment.begin(write=True) as transaction:
            for message in messages:
                digest = message.digest
                before = transaction.get(digest, db=self._stamps)
                if before is not None:
                    transaction.delete(before + digest, db=self._order)
                transaction.put(digest, stamp, db=self._stamps)
                transaction.put(stamp + digest, b"", db=self._order)
            self._forget(transaction)

    def _forget(self, transaction: Any) -> None:
        surplus = transaction.stat(self._order)["entries"] - self._limit
        oldest = self._oldest()
        with transaction.cursor(self._order) as cursor:
            while cursor.first():
                key = cursor.key()
                if surplus <= 0 and key[:_STAMP_BYTES] >= oldest:
                    return
                surplus -= 1
                cursor.delete()
                transaction.delete(key[_STAMP_BYTES:], db=self._stamps)

    def _oldest(self) -> bytes:
        return self._stamp(max(0.0, self._clock() - self._max_age_s))

    @staticmethod
    def _stamp(seconds: float) -> bytes:
        return int(seconds * 1_000_000).to_bytes(_STAMP_BYTES, "big")

    def __len__(self) -> int:
        with self._environment.begin() as transaction:
            entries: int = transaction.stat(self._stamps)["entries"]
        return entries

    def close(self) -> None:
        self._environment.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


# one at a time: two CREATE TABLE IF NOT EXISTS can meet in the catalog
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtext('replication_consumer_seen'))"
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS replication_consumer_seen (
  digest bytea PRIMARY KEY, seen_at timestamptz NOT NULL DEFAULT clock_timestamp());
CREATE INDEX IF NOT EXISTS replication_consumer_seen_at
  ON replication_consumer_seen (seen_at)
"""
_CONTAINS: Final = """
SELECT FROM replication_consumer_seen
 WHERE digest = %s AND seen_at >= clock_timestamp() - make_interval(secs => %s)
"""
# of READ COMMITTED, only a statement after the lock sees what its last holder did
_LOCK_DIGEST: Final = "SELECT pg_advisory_xact_lock(%s)"
_LOCK_BYTES: Final = 8
_ADD: Final = """
INSERT INTO replication_consumer_seen (digest) VALUES (%s)
ON CONFLICT (digest) DO UPDATE SET seen_at = EXCLUDED.seen_at
"""
_FORGET: Final = """
DELETE FROM replication_consumer_seen
 WHERE seen_at < clock_timestamp() - make_interval(secs => %s)
"""
_ADDS_BETWEEN_FORGETTING: Final = 1000


class SeenInPostgres:
    """A table of the messages of the last `max_age_s` (a week), in your transaction.

    What the handler writes on the same connection and the mark commit together. Who
    asks for a message that another transaction asked for waits until that one ends: ask
    in a transaction (of READ COMMITTED, the default) for few messages, always in the
    order of the topic. About 150 bytes of disk each; each thousandth `add` deletes what
    is too old.
    """

    def __init__(
        self, connection: psycopg.Connection[Any], *, max_age_s: float = _WEEK_S
    ) -> None:
        self._connection = connection
        self._max_age_s = max_age_s
        self._adds = 0
        with connection.transaction():
            connection.execute(_LOCK)
            connection.execute(_TABLE)

    def __contains__(self, message: RowMessage) -> bool:
        number = int.from_bytes(message.digest[:_LOCK_BYTES], "big", signed=True)
        self._connection.execute(_LOCK_DIGEST, (number,))
        parameters = (message.digest, self._max_age_s)
        return self._connection.execute(_CONTAINS, parameters).rowcount > 0

    def add(self, *messages: RowMessage) -> None:
        """Keep these, when the caller's transaction commits."""
        for message in messages:
            self._connection.execute(_ADD, (message.digest,))
            self._adds += 1
            if self._adds % _ADDS_BETWEEN_FORGETTING == 0:
                self.forget()

    def forget(self) -> int:
        """Delete what is too old; tell how many that were."""
        return self._connection.execute(_FORGET, (self._max_age_s,)).rowcount
