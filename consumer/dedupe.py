"""Filters of `row` messages that were handled already, by (name, table, hash).

    if message not in seen:
        handle(message)
        seen.add(message)

A message is added after it was handled, so a crash in between repeats it and loses
none. With SeenInPostgres both commit together, which is exactly once. Each filter has a
bound: a message that comes again after it counts as new.

Age is time that passed, not what the clock shows: a clock that is set forward would
empty a filter. Time in which no process had it open counts up to a part of its bound.
"""

from collections import deque
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Protocol, Self

import psycopg

from consumer.pg_catalog import BELOW, FROM, IS, MINUS, PLUS
from consumer.row_message import RowMessage
from walstream.errors import ConfigError
from walstream.telemetry import runtime

_DAY_S: Final = 86_400.0
_WEEK_S: Final = 7 * _DAY_S
_STAMP_BYTES: Final = 8
_BELIEVED: Final = 7  # this part of a filter's age


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
            raise ValueError("limit must be at least 1")
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
        clock: Callable[[], float] = runtime.time,
        steady: Callable[[], float] = runtime.monotonic,
    ) -> None:
        try:
            import lmdb  # noqa: PLC0415 - an application without this filter needs none
        except ModuleNotFoundError:
            raise ConfigError(
                "SeenInLmdb needs lmdb, which is not installed",
                hint="pip install 'walstream-consumer[lmdb]'",
            ) from None

        self._max_age_s = max_age_s
        self._limit = limit
        self._clock = clock
        self._steady = steady
        # room for both copies of each entry, and for the pages that are being freed
        size = max(1 << 24, limit * 400)
        self._environment = lmdb.open(str(folder), map_size=size, max_dbs=3)
        self._stamps = self._environment.open_db(b"stamps")  # digest -> when
        self._order = self._environment.open_db(b"order")  # when + digest
        self._time = self._environment.open_db(b"time")  # the clock's -> the filter's
        self._opened_at = self._then() - steady()  # of the filter's time

    def _then(self) -> float:
        """Return the filter's time when it was opened."""
        wall = self._clock()
        with self._environment.begin() as transaction:
            with transaction.cursor(self._time) as cursor:
                found = cursor.item() if cursor.last() else None
            with transaction.cursor(self._order) as cursor:
                last = cursor.key()[:_STAMP_BYTES] if cursor.last() else None
        # an earlier version's stamps were the clock's
        kept = found or ((last, last) if last is not None else None)
        if kept is None:
            return wall
        shown, now = (_seconds(text) for text in kept)
        return now + min(max(0.0, wall - shown), self._max_age_s / _BELIEVED)

    def _now(self) -> float:
        return self._opened_at + self._steady()

    def __contains__(self, message: RowMessage) -> bool:
        with self._environment.begin(db=self._stamps) as transaction:
            stamp = transaction.get(message.digest)
        return stamp is not None and stamp >= self._oldest()

    def add(self, *messages: RowMessage) -> None:
        """Keep these; on disk when it returns."""
        stamp = self._stamp(self._now())
        with self._environment.begin(write=True) as transaction:
            for message in messages:
                digest = message.digest
                before = transaction.get(digest, db=self._stamps)
                if before is not None:
                    transaction.delete(before + digest, db=self._order)
                transaction.put(digest, stamp, db=self._stamps)
                transaction.put(stamp + digest, b"", db=self._order)
            self._forget(transaction)
            transaction.drop(self._time, delete=False)
            transaction.put(self._stamp(self._clock()), stamp, db=self._time)

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
        return self._stamp(max(0.0, self._now() - self._max_age_s))

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


def _seconds(stamp: bytes) -> float:
    return int.from_bytes(stamp, "big") / 1_000_000


# one at a time: two CREATE TABLE IF NOT EXISTS can meet in the catalog
_LOCK: Final = (
    "SELECT pg_catalog.pg_advisory_xact_lock("
    "pg_catalog.hashtext('replication_consumer_seen'))"
)
_TABLE: Final = """
CREATE TABLE IF NOT EXISTS replication_consumer_seen (
  digest pg_catalog.bytea PRIMARY KEY,
  seen_at timestamp with time zone NOT NULL DEFAULT pg_catalog.clock_timestamp());
CREATE INDEX IF NOT EXISTS replication_consumer_seen_at
  ON replication_consumer_seen (seen_at);
CREATE TABLE IF NOT EXISTS replication_consumer_seen_time (
  one boolean PRIMARY KEY DEFAULT true CHECK (one),
  shown timestamp with time zone NOT NULL, now timestamp with time zone NOT NULL);
INSERT INTO replication_consumer_seen_time (shown, now)
SELECT at, at FROM (
  SELECT coalesce(pg_catalog.max(seen_at), pg_catalog.clock_timestamp())
  FROM replication_consumer_seen
) AS found (at) ON CONFLICT DO NOTHING
"""
# the filter's time: no more passed since it was kept than the process believes
_NOW: Final = f"""(
  SELECT now {PLUS} least(
    greatest(pg_catalog.clock_timestamp() {MINUS} shown, '0'),
    pg_catalog.make_interval(secs => %s)) FROM replication_consumer_seen_time)
"""  # noqa: S608 - constants
_OLDEST: Final = f"({_NOW} {MINUS} pg_catalog.make_interval(secs => %s))"
_CONTAINS: Final = f"""
SELECT FROM replication_consumer_seen
 WHERE digest {IS} %s AND seen_at {FROM} {_OLDEST}
"""
# who keeps it at the same time keeps the same
_KEEP_TIME: Final = f"""
UPDATE replication_consumer_seen_time SET now = {_NOW},
       shown = pg_catalog.clock_timestamp()
 WHERE one {IS} (SELECT one FROM replication_consumer_seen_time FOR UPDATE SKIP LOCKED)
"""  # noqa: S608 - constants
# of READ COMMITTED, only a statement after the lock sees what its last holder did
_LOCK_DIGEST: Final = "SELECT pg_catalog.pg_advisory_xact_lock(%s)"
_LOCK_BYTES: Final = 8
_ADD: Final = f"""
INSERT INTO replication_consumer_seen (digest, seen_at) VALUES (%s, {_NOW})
ON CONFLICT (digest) DO UPDATE SET seen_at = EXCLUDED.seen_at
"""  # noqa: S608 - constants
_FORGET: Final = f"""
DELETE FROM replication_consumer_seen WHERE seen_at {BELOW} {_OLDEST}
"""  # noqa: S608 - constants
_ADDS_BETWEEN_FORGETTING: Final = 1000
_TIME_KEPT_S: Final = 60.0


class SeenInPostgres:
    """A table of the messages of the last `max_age_s` (a week), in your transaction.

    What the handler writes on the same connection and the mark commit together. Who
    asks for a message that another transaction asked for waits until that one ends: ask
    in a transaction (of READ COMMITTED, the default) for few messages, always in the
    order of the topic. About 150 bytes of disk each; each thousandth `add` deletes what
    is too old.
    """

    def __init__(
        self,
        connection: psycopg.Connection[Any],
        *,
        max_age_s: float = _WEEK_S,
        steady: Callable[[], float] = runtime.monotonic,
    ) -> None:
        self._connection = connection
        self._max_age_s = max_age_s
        self._steady = steady
        self._kept_at: float | None = None  # the filter's time, by us
        self._adds = 0
        with connection.transaction():
            connection.execute(_LOCK)
            connection.execute(_TABLE)
            self._keep_time()

    def _believed(self) -> float:
        """Return how much time may have passed since the filter's was kept."""
        if self._kept_at is None:
            return self._max_age_s / _BELIEVED
        return self._steady() - self._kept_at

    def _keep_time(self) -> None:
        now = self._steady()
        if self._connection.execute(_KEEP_TIME, (self._believed(),)).rowcount > 0:
            self._kept_at = now

    def __contains__(self, message: RowMessage) -> bool:
        number = int.from_bytes(message.digest[:_LOCK_BYTES], "big", signed=True)
        self._connection.execute(_LOCK_DIGEST, (number,))
        parameters = (message.digest, self._believed(), self._max_age_s)
        return self._connection.execute(_CONTAINS, parameters).rowcount > 0

    def add(self, *messages: RowMessage) -> None:
        """Keep these, when the caller's transaction commits."""
        for message in messages:
            self._connection.execute(_ADD, (message.digest, self._believed()))
            self._adds += 1
            if self._adds % _ADDS_BETWEEN_FORGETTING == 0:
                self.forget()
        if self._believed() > _TIME_KEPT_S:
            self._keep_time()

    def forget(self) -> int:
        """Delete what is too old; tell how many that were."""
        parameters = (self._believed(), self._max_age_s)
        return self._connection.execute(_FORGET, parameters).rowcount
