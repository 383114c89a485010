"""The database of an application that uses the consumer library."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final

from psycopg.pq import TransactionStatus

from consumer.state import partition_state as statements
from consumer.state import truncate_barrier as barriers
from consumer.state.connection import COMMITTED

_RAN: Final = -1
AppRow = dict[str, Any]


class _Answer(list[tuple[Any, ...]]):
    """The rows of a statement."""

    rowcount = 0

    def fetchone(self) -> tuple[Any, ...] | None:
        return self[0] if self else None

    def fetchall(self) -> "list[tuple[Any, ...]]":
        return self


def _changed(count: int) -> _Answer:
    answer = _Answer()
    answer.rowcount = count
    return answer


class SimDatabase:
    """The application's database: its tables, and the library's."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[str | None, AppRow]] = {}
        self.applied: Counter[tuple[object, ...]] = Counter()
        self.applying: list[tuple[object, ...]] = []  # in the open transaction
        self._state: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        self._chunks: dict[tuple[Any, ...], int] = {}
        self._met: set[tuple[Any, ...]] = set()
        self._xid = 0
        self._depth = 0  # of transactions in each other
        self.pgconn = SimpleNamespace(transaction_status=TransactionStatus.INTRANS)
        self.closed = False
        self.holders: dict[int, bool] = {}  # other sessions with the lock: frozen?
        self.truncating = False  # does another one run the handler of a Truncate?
        self.limits: list[tuple[int, int]] = []  # below which LSN chunks were deleted
        self.old_chunks = 0  # rows that such a statement finds
        self.committed: set[str] = set()
        self._answers: dict[str, Callable[[Any], _Answer]] = {
            statements._LOCK: lambda _: _Answer(
                [(None if self.holders else str(self._xid),)]
            ),
            statements._READ: self._read,
            statements._INSERT: self._insert,
            statements._BEGIN: self._begin,
            statements._MOVE: self._move,
            statements._REACH: self._reach,
            statements._READ_CHUNK: self._read_chunk,
            statements._INSERT_CHUNK: self._insert_chunk,
            statements._MOVE_CHUNK: self._move_chunk,
            statements._CLEAN: self._clean,
            statements._FORGET_CHUNKS: self._forget_chunks,
            statements._HOLDERS: lambda _: _Answer(list(self.holders.items())),
            statements._SAME_TRANSACTION: lambda asked: _Answer(
                [(bool(self._depth) and asked[0] == str(self._xid),)]
            ),
            COMMITTED: lambda asked: _Answer([(asked[0] in self.committed,)]),
            barriers._LOCK: lambda _: _Answer([(not self.truncating,)]),
            barriers._MET: self._meet,
            barriers._ARRIVE: self._arrive,
            barriers._ARRIVED: self._arrived,
            barriers._BEGUN_LATE: lambda _: _Answer([]),  # each begins at its first
            barriers._EARLIER: lambda _: _Answer([]),  # each waits at the same
            barriers._LEAVE: self._leave,
            barriers._FORGET: self._forget,
        }

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Take effect whole, or not at all."""
        self._xid += 1
        self._depth += 1
        before = (
            {name: dict(rows) for name, rows in self.tables.items()},
            dict(self._state),
            dict(self._chunks),
            set(self._met),
        )
        try:
            yield
        except BaseException:
            self.tables, self._state, self._chunks, self._met = before
            self.applying.clear()
            raise
        finally:
            self._depth -= 1
        self.committed.add(str(self._xid))
        if not self._depth:
            self.applied.update(self.applying)
            self.applying.clear()

    @property
    def barriers(self) -> int:
        """Return how many arrivals and runs are kept."""
        return len(self._met)

    def execute(self, _tx: object, statement: str, values: Any = ()) -> _Answer:
        if "pg_terminate_backend" in statement:
            del self.holders[values[0]]
            return _changed(1)
        return self._answers[statement](values)

    def _read(self, key: tuple[Any, ...]) -> _Answer:
        found = self._state.get(tuple(key))
        return _Answer([found] if found else [])

    def _insert(self, values: tuple[Any, ...]) -> _Answer:
        drawn, *key = values[:4]
        first = 0 if self._is_begun(values[4:]) else None
        self._state.setdefault(tuple(key), (drawn, "0", "0", first, None, None))
        return _changed(1)

    def _begin(self, values: tuple[Any, ...]) -> _Answer:
        group, topic, topic_id, *rows, own, _, _, _, _ = values
        begun = self._is_begun((group, topic))
        for drawn, part, first in zip(*rows, strict=True):
            if begun and part != own:
                continue
            key = group, topic, part
            row = self._state.get(key, (drawn, "0", "0", None, None, None))
            if row[3] is None:
                self._state[key] = (*row[:3], first, row[4] or topic_id, row[5])
        return _changed(1)

    def _is_begun(self, topic: Any) -> bool:
        return any(
            key[:2] == tuple(topic) and row[3] is not None
            for key, row in self._state.items()
        )

    def _move(self, values: tuple[Any, ...]) -> _Answer:
        after, key, before = values[:5], values[5:8], values[8:12]
        found = self._state.get(tuple(key))
        if found is None or found[:4] != tuple(before):
            return _changed(0)
        self._state[tuple(key)] = (found[0], *after)
        return _changed(1)

    def _reach(self, key: tuple[Any, ...]) -> _Answer:
        lsns = [int(one[3]) for one in self._chunks if one[:3] == tuple(key)]
        return _Answer([(max(lsns, default=None),)])

    def _read_chunk(self, key: tuple[Any, ...]) -> _Answer:
        index = self._chunks.get(tuple(key))
        return _Answer([] if index is None else [(index,)])

    def _insert_chunk(self, values: tuple[Any, ...]) -> _Answer:
        *key, index = values
        if tuple(key) in self._chunks:
            return _changed(0)
        self._chunks[tuple(key)] = index
        return _changed(1)

    def _move_chunk(self, values: tuple[Any, ...]) -> _Answer:
        index, *key, before = values
        if self._chunks.get(tuple(key)) != before:
            return _changed(0)
        self._chunks[tuple(key)] = index
        return _changed(1)

    def _clean(self, values: tuple[Any, ...]) -> _Answer:
        *_, below, most = values
        self.limits.append((below, most))
        return _changed(self.old_chunks)

    def _forget_chunks(self, key: tuple[Any, ...]) -> _Answer:
        gone = [one for one in self._chunks if one[:3] == tuple(key)]
        for one in gone:
            del self._chunks[one]
        return _changed(len(gone))

    def _meet(self, values: tuple[Any, ...]) -> _Answer:
        *name, told, partition = values
        met = {one[-1] for one in self._met if _is_same(one, tuple(name), told)}
        return _Answer([(one,) for one in sorted(met & {_RAN, partition})])

    def _arrive(self, values: tuple[Any, ...]) -> _Answer:
        self._met.add(tuple(values))
        return _changed(1)

    def _arrived(self, asked: Any) -> _Answer:
        place = int(asked["lsn"]), int(asked["seq_id"])
        where, source = (asked["group"], asked["topic"]), asked["source"]
        there = {
            (one[-1], (int(one[2]), int(one[3])) == place)
            for one in self._met
            if one[:2] == where
            and one[-1] >= 0
            and (int(one[2]), int(one[3])) >= place
            and (one[4] in {source, ""} or not source)
        }
        there |= {
            (key[2], False)
            for key, row in self._state.items()
            if key[:2] == where
            and (int(row[1]), int(row[2])) >= place
            and (row[5] in {source, None} or not source)
        }
        return _Answer(sorted(there))

    def _leave(self, values: tuple[Any, ...]) -> _Answer:
        *name, told = values
        self._met = {
            one
            for one in self._met
            if not _is_same(one, tuple(name), told) or one[-1] == _RAN
        }
        return _changed(1)

    def _forget(self, asked: Any) -> _Answer:
        """Keep the newest runs, and those that some partition is not past."""
        where, source = (asked["group"], asked["topic"]), asked["source"]
        runs = sorted(
            ((int(one[2]), int(one[3])), one)
            for one in self._met
            if one[:2] == where and one[4:] == (source, _RAN)
        )
        past = [
            (int(row[1]), int(row[2]))
            for key, row in self._state.items()
            if key[:2] == where
            and key[2] < asked["partitions"]
            and (row[5] or "") == source
        ]
        for place, one in runs[: -asked["kept"] or None]:
            if sum(at >= place for at in past) == asked["partitions"]:
                self._met.remove(one)
        return _changed(0)


def _is_same(one: tuple[Any, ...], name: tuple[Any, ...], told: str) -> bool:
    """Return whether it is that barrier; a source may not have been told yet."""
    return one[:4] == name[:4] and (one[4] in {name[4], ""} or not told)
