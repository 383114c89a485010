"""Writes the shop's transactions to PostgreSQL, steadily, from a thread of its own."""

import threading
import time
from typing import Final, Self

from walstream.cli.demo.workload import Trade, Transaction
from walstream.errors import WalstreamError
from walstream.postgres.connection import Connection, session

_CATCH_UP_S: Final = 0.5  # a slow moment longer than this is not made up for


class Load:
    """Load that runs until stopped; `pause` returns when nothing is being written."""

    def __init__(self, dsn: str, trade: Trade, rate: float) -> None:
        self.rows = 0  # changed and committed: for display, the audit counts
        self._dsn = dsn
        self._trade = trade
        self._interval_s = 1.0 / rate
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)

    def start(self) -> Self:
        self._thread.start()
        return self

    def check(self) -> None:
        """Raise what ended the thread."""
        if self._failure is not None:
            raise self._failure

    def stop(self) -> None:
        """Back when the last transaction is committed."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        try:
            with session(self._dsn) as connection:
                for transaction in self._trade.opening():
                    self._write(connection, transaction)
                self._trade_steadily(connection)
        except WalstreamError as error:
            self._failure = error

    def _trade_steadily(self, connection: Connection) -> None:
        due = time.monotonic()
        while not self._stop.wait(max(0.0, due - time.monotonic())):
            self._write(connection, self._trade.transaction())
            due = max(due + self._interval_s, time.monotonic() - _CATCH_UP_S)

    def _write(self, connection: Connection, transaction: Transaction) -> None:
        # one round trip, not one a statement
        with connection.pipeline(), connection.transaction():
            for statement in transaction:
                connection.execute(statement.text, statement.values)
        self.rows += sum(statement.rows for statement in transaction)
