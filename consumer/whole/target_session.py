"""The application's database: each whole transaction in one of its own, or not at all.

What the handler writes and the group's position commit together.
"""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

import psycopg
from psycopg import IsolationLevel
from psycopg.pq import TransactionStatus

from consumer.error_text import COMMITTED_HINT
from consumer.errors import ConsumerStopped, HandlerFailed, TransactionEnded
from consumer.group.assigned_partition import Place
from consumer.handler import Fatal, Transaction, unfinished
from consumer.state.batch import Locked, Moved
from consumer.state.connection import connect, passes
from consumer.state.position import SnapshotChunk
from consumer.state.row_keys import RowKeys
from consumer.state.value_store import ValueStore, make_value_table
from consumer.whole.application import TransactionHandler
from consumer.whole.due import Due
from consumer.whole.filled_ops import FilledOps
from consumer.whole.group_state import GroupRow, GroupState
from consumer.whole.transaction import WholeTransaction
from walstream.lsn import Lsn, show

_OF_THE_WRITES: Final = (
    psycopg.IntegrityError,
    psycopg.DataError,
    psycopg.ProgrammingError,
    psycopg.NotSupportedError,
)


class TargetSession:
    """A session with the database, connected when it is needed."""

    def __init__(
        self,
        dsn: str,
        state: GroupState,
        handler: TransactionHandler,
        keys: RowKeys,
        isolation: IsolationLevel | None = None,
    ) -> None:
        """`keys` are those of the tables of which values are kept."""
        self._keys = keys
        self._values: ValueStore | None = None
        self._dsn = dsn
        self._isolation = isolation
        self._state = state
        self._handler = handler
        self._tx: psycopg.Connection[Any] | None = None

    @property
    def tx(self) -> Transaction:
        """The session; psycopg.OperationalError where the server does not answer."""
        if self._tx is None or self._tx.closed:
            self._tx = connect(self._dsn, self._state.group, self._isolation)
        return self._tx

    def close(self) -> None:
        if self._tx is not None:
            self._tx.close()
            self._tx = None

    def make(self) -> None:
        self._state.make(self.tx)
        if self._keys:
            schema = make_value_table(self.tx)
            place = self._state.all_places
            self._values = ValueStore(self._state.group, place, self._keys, schema)

    def read(self) -> tuple[GroupRow, Mapping[Place, Lsn]]:
        """Return the state, and the newest snapshots of which rows took effect.

        Raise Locked where values are kept, and another process of the group works.
        """
        tx = self.tx
        with tx.transaction():
            if self._values is not None:
                self._lock(tx)  # or another process keeps values meanwhile
            row = self._state.read(tx)
            if self._values is not None:
                self._values.believe(tx, _position(row))
            return row, self._state.reach(tx)

    def index_of(self, place: Place, chunk: SnapshotChunk) -> int:
        """Return the last row of a chunk that took effect."""
        return self._state.read_chunk(self.tx, place, chunk)

    def handle(self, due: Due, before: GroupRow, after: GroupRow) -> GroupRow:
        """Handle what is due, and move the state; return what it is then.

        Raise Locked or Moved where another process of the group works or has worked,
        and Moved where nobody knows what was committed; or raise what the handler did,
        or the commit. What a handler raised behind a COMMIT of its own is not why it
        stops: what took effect is not done again.
        """
        tx, xid = self.tx, None
        try:
            with tx.transaction():
                xid = self._lock(tx)
                self._call_filled(tx, due.whole)
                for place, chunks in due.chunks.items():
                    self._state.keep_chunks(tx, place, chunks)
                return self._move(tx, xid, before, after)
        except ConsumerStopped:
            raise
        except Exception as error:
            if tx.closed:
                raise Moved from None  # nobody knows whether it was committed
            if xid is not None and self._state.committed(tx, xid):
                raise _committed(due.whole) from error
            raise

    def keep(
        self, before: GroupRow, after: GroupRow, *, forget: bool = False
    ) -> GroupRow:
        """Move the state alone; with `forget`, to another source."""
        tx = self.tx
        with tx.transaction():
            xid = self._lock(tx)
            if forget:
                self._state.forget_chunks(tx)
                if self._values is not None:
                    self._values.forget(tx)
            return self._move(tx, xid, before, after)

    def passes(self, error: BaseException) -> bool:
        """Return whether the same, done again, may succeed."""
        if self._tx is None or self._tx.closed:
            return isinstance(error, psycopg.OperationalError)
        return passes(error, self._tx)

    def _lock(self, tx: Transaction) -> str:
        xid = self._state.lock(tx)
        if xid is None:
            raise Locked
        return xid

    def _move(
        self, tx: Transaction, xid: str, before: GroupRow, after: GroupRow
    ) -> GroupRow:
        moved = self._state.move(tx, xid, before, after)
        if moved is None:
            raise Moved
        if self._values is not None:
            self._values.seal(tx, _position(moved))
        return moved

    def _call_filled(self, tx: Transaction, whole: WholeTransaction) -> None:
        """Call the handler with rows that are filled, as far as values are kept."""
        if self._values is None:
            self._call(tx, whole)
            return
        with closing(FilledOps(whole.ops)) as ops:
            ops.look_up(tx, self._values)
            self._call(tx, replace(whole, ops=ops))

    def _call(self, tx: Transaction, whole: WholeTransaction) -> None:
        returned = self._handler(tx, whole)
        reason = unfinished(returned)
        if reason is not None:
            raise Fatal(reason)
        if tx.closed:
            raise Moved
        if tx.info.transaction_status is not TransactionStatus.INTRANS:
            raise TransactionEnded(
                f"the handler ended its transaction, or left it failed, at {whole!r}",
                hint="raise the error, or run what may fail inside:"
                " with tx.transaction():",
            ).on("", whole.lsn, 0)


def _position(row: GroupRow) -> str:
    """Name what each move changes, and what an operator passes transactions by with."""
    return f"{row.lsn}/{row.version}"


def _committed(whole: WholeTransaction) -> TransactionEnded:
    return TransactionEnded(
        f"the handler ended its transaction, at {whole!r}",
        hint=COMMITTED_HINT,
    ).on("", whole.lsn, 0)


def failed(whole: WholeTransaction, cause: BaseException) -> HandlerFailed:
    """Make the error of what a handler raised, or its writes at the commit."""
    inner = cause.cause if isinstance(cause, Fatal) else cause
    name = inner if isinstance(inner, str) else type(inner).__name__
    if inner is None:
        name = "Fatal"
    if isinstance(inner, _OF_THE_WRITES):
        constraint = inner.diag.constraint_name
        name += f", {inner.sqlstate}" + (
            f", constraint {constraint}" * bool(constraint)
        )
    error = HandlerFailed(
        f"the handler failed ({name}) at {whole!r}, lsn {whole.lsn} ({show(whole.lsn)})"
    ).on("", whole.lsn, 0)
    error.__cause__ = inner if isinstance(inner, BaseException) else cause
    return error
