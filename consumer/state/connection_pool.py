"""The sessions of a consumer with the application's database, lent turn by turn.

There are as many as turns that use one at the same time: a pool's threads, at most. So
nobody waits here. The one that was given back last is lent first, and the others rest.
"""

import threading
from collections import deque
from contextlib import suppress
from typing import Final

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus

from consumer.handler import Transaction
from consumer.state.connection import connect
from walstream.telemetry import runtime

_IDLE_S: Final = 60.0  # that a session may rest while others are used


class Connections:
    """Sessions outside of a transaction."""

    def __init__(
        self, dsn: str, group: str, isolation: IsolationLevel | None = None
    ) -> None:
        self._dsn = dsn
        self._group = group
        self._isolation = isolation
        self._idle: deque[tuple[Transaction, float]] = deque()
        self._lock = threading.Lock()
        self._closed = False

    def take(self) -> Transaction:
        """Lend one that rests, or connect; raise psycopg.OperationalError."""
        while True:
            with self._lock:
                if not self._idle:
                    break
                tx, _ = self._idle.pop()
            if not tx.closed:
                return tx
        return connect(self._dsn, self._group, self._isolation)

    def give_back(self, tx: Transaction) -> None:
        """Take back what `take` gave; what is of no more use is closed."""
        if tx.closed:  # its server went away, mostly with all the others
            self.renew()
            return
        if tx.info.transaction_status is not TransactionStatus.IDLE:
            _close(tx)
            return
        now = runtime.monotonic()
        too_long: Transaction | None = None
        with self._lock:
            if self._closed:
                too_long = tx
            else:
                self._idle.append((tx, now))
                if now - self._idle[0][1] > _IDLE_S:
                    too_long, _ = self._idle.popleft()
        if too_long is not None:
            _close(too_long)

    def renew(self) -> None:
        """Close those that rest: the next turns connect again."""
        with self._lock:
            idle = [tx for tx, _ in self._idle]
            self._idle.clear()
        for tx in idle:
            _close(tx)

    def close(self) -> None:
        """Close all, those that are lent when they come back."""
        with self._lock:
            self._closed = True
        self.renew()


def _close(tx: Transaction) -> None:
    with suppress(psycopg.Error):
        tx.close()
