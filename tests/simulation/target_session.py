"""A session with the simulated target, as psycopg's Connection shows it.

Each statement is a call of a port, takes its time, and may be the last one: the session
is lost before its effect, or after it. So a COMMIT's answer gets lost, too.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, Self

import psycopg
from psycopg.pq import TransactionStatus

from tests.simulation.target import SimTarget, Tx
from tests.simulation.world import Killed

_PAUSES: Final = (0.0, 0.0002, 0.0002, 0.001, 0.02)
_LOST: Final = "server closed the connection unexpectedly"


class Rows(list[tuple[Any, ...]]):
    """The rows of an answer; a cursor, too."""

    def __init__(self, rows: Any = (), *, count: int | None = None) -> None:
        super().__init__(rows)
        self.rowcount = len(self) if count is None else count
        self.description = True if count is None else None

    def fetchone(self) -> tuple[Any, ...] | None:
        return self[0] if self else None

    def fetchall(self) -> "Rows":
        return self


def done(count: int) -> Rows:
    """Answer a statement that writes."""
    return Rows(count=count)


Statement = Callable[[Tx, Any], Rows]


class _Cursor:
    def __init__(self, session: "TargetSession") -> None:
        self.execute = session.execute

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class TargetSession:
    """A connection in autocommit."""

    def __init__(
        self, target: SimTarget, statement_of: Callable[[str], Statement]
    ) -> None:
        self.target = target
        self._statement_of = statement_of
        self._backend = target.begin()
        self._lost = False
        self._closed = False
        self._depth = 0  # of `transaction` blocks
        self.pgconn = self.info = SimpleNamespace()
        self._show(TransactionStatus.IDLE)

    def _show(self, status: TransactionStatus) -> None:
        self.info.transaction_status = status

    @property
    def broken(self) -> bool:
        return self._lost

    @property
    def closed(self) -> bool:
        return self._closed or self._lost

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if not self.closed:
            self._backend.end("closed")
        self._closed = True

    def cursor(self, **_: object) -> "_Cursor":
        return _Cursor(self)

    def execute(
        self, statement: str | bytes, values: Any = (), *, prepare: bool = False
    ) -> Rows:
        del prepare
        text = statement.decode() if isinstance(statement, bytes) else statement
        if self.info.transaction_status is TransactionStatus.INERROR:
            raise psycopg.errors.InFailedSqlTransaction
        run = self._statement_of(text)
        try:
            rows: Rows = self._call("statement", lambda: self._run(run, values))
        except psycopg.Error:
            self._fail()
            raise
        return rows

    def _run(self, run: Statement, values: Any) -> Rows:
        backend = self._backend
        if backend.tx is not None:
            return run(backend.tx, values)
        tx = backend.tx = Tx(self.target, self._see_alive)
        rows = run(tx, values)
        if not self._depth:
            tx.commit()
            backend.tx = None
        return rows

    def _fail(self) -> None:
        if self._depth and not self._lost:
            self._show(TransactionStatus.INERROR)
        elif self._backend.tx is not None and not self._depth:
            self._backend.tx.roll_back()
            self._backend.tx = None

    @contextmanager
    def transaction(self) -> Iterator["TargetSession"]:
        """Commit with the block, or roll back."""
        if self._depth:
            raise NotImplementedError("savepoints")
        self._depth = 1
        self._show(TransactionStatus.INTRANS)
        try:
            yield self
        except Killed:
            raise
        except BaseException:
            self._leave()
            if not self.closed and self._backend.tx is not None:
                self._roll_back()
            raise
        self._leave()
        if self._backend.tx is not None or self.closed:
            self._call("commit", self._commit)

    def _leave(self) -> None:
        self._depth = 0
        self._show(TransactionStatus.IDLE)

    def _roll_back(self) -> None:
        """Undo it; what fails here is not told, since there is another reason."""
        tx = self._backend.tx
        try:
            self._call("rollback", lambda: None if tx is None else tx.roll_back())
        except psycopg.Error:
            return
        self._backend.tx = None

    def _commit(self) -> None:
        tx, self._backend.tx = self._backend.tx, None
        if tx is not None:
            tx.commit()

    def _see_alive(self) -> None:
        if self._backend.gone:
            self._lost = True
            self._show(TransactionStatus.UNKNOWN)
            if "administrator" in self._backend.gone:
                raise psycopg.errors.AdminShutdown(self._backend.gone)
            raise psycopg.OperationalError(_LOST)
        if self.closed:
            raise psycopg.OperationalError("the connection is closed")

    def _call(self, name: str, act: Callable[[], Any]) -> Any:
        world, backend = self.target.world, self._backend
        world.port(name)
        self._pause()
        self._see_alive()
        if self._is_cut():
            backend.end(_LOST)
        self._see_alive()
        backend.active, backend.changed = True, world.now
        try:
            answer = act()
        finally:
            backend.active, backend.changed = False, world.now
        if self._is_cut():
            backend.end(_LOST)
            self.target.lost_answers += name == "commit"
        world.port(f"{name} done")
        self._pause()
        self._see_alive()
        return answer

    def _is_cut(self) -> bool:
        target = self.target
        if target.cuts and target.world.random.random() < 0.2:
            target.cuts -= 1
            return True
        return False

    def _pause(self) -> None:
        world = self.target.world
        world.wait(lambda: False, world.random.choice(_PAUSES))
