"""A transaction's ops with the values that they left out and that are kept.

They are looked up before the handler is called, some ops at a time, and lie on disk
beyond some memory: a small update may leave out a large value.
"""

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import orjson

from consumer.handler import Fatal, Transaction
from consumer.op import Op
from consumer.state.value_store import KeyRefused, ValueStore
from consumer.whole.transaction import Ops
from walstream.errors import WalstreamError
from walstream.op import Kind

_AT_ONCE: Final = 500  # ops
_BYTES_AT_ONCE: Final = 8 << 20  # of their records, about
_TABLE: Final = "CREATE TABLE filled (number INTEGER PRIMARY KEY, texts BLOB)"
_ADD: Final = "INSERT INTO filled VALUES (?, ?)"
_READ: Final = "SELECT number, texts FROM filled ORDER BY number"


class FilledOps:
    """Ops that are filled whenever they are looked at; those given are not changed."""

    def __init__(self, ops: Ops) -> None:
        self._ops = ops
        self._kept: set[int] = set()  # numbers of ops of tables whose values are kept
        self._disk: sqlite3.Connection | None = None

    def look_up(self, tx: Transaction, values: ValueStore) -> None:
        """Find what they left out, and keep what they have, in the transaction."""
        number = 0
        for some in _runs(self._ops):
            left = some
            while left:
                try:
                    filling = values.fill(tx, left)
                except KeyRefused as refused:
                    raise Fatal(refused.cause) from None
                values.keep(tx, filling, filling.count)
                for op in left[: filling.count]:
                    self._note(number, op)
                    number += 1
                left = left[filling.count :]

    def _note(self, number: int, op: Op) -> None:
        if not op.is_kept:
            return
        self._kept.add(number)
        filled = op.new.filled
        if filled:
            texts = orjson.dumps({name: op.new[name] for name in filled})
            self._run(_ADD, (number, texts))

    def __iter__(self) -> Iterator[Op]:
        rows = iter(self._run(_READ)) if self._disk is not None else iter(())
        at, texts = next(rows, (-1, b""))
        for number, op in enumerate(self._ops):
            if number not in self._kept:
                yield op
                continue
            found: Mapping[str, str] = {}
            if number == at:
                found = orjson.loads(texts)
                at, texts = next(rows, (-1, b""))
            copy = op.copied()
            copy.fill(found)
            yield copy

    def __len__(self) -> int:
        return len(self._ops)

    def close(self) -> None:
        if self._disk is not None:
            self._disk.close()
            self._disk = None

    def _run(self, statement: str, values: tuple[Any, ...] = ()) -> sqlite3.Cursor:
        try:
            if self._disk is None:
                # without a name: SQLite keeps some in memory, and it goes with us
                self._disk = sqlite3.connect("", isolation_level=None)
                self._disk.execute("PRAGMA journal_mode = OFF")
                self._disk.execute("PRAGMA synchronous = OFF")
                self._disk.execute(_TABLE)
            return self._disk.execute(statement, values)
        except sqlite3.Error as error:
            raise WalstreamError(
                "the values that a transaction left out cannot be kept on disk:"
                f" {error}",
                hint="give the folder of temporary files (SQLITE_TMPDIR, or TMPDIR)"
                " more room",
            ) from None


def _runs(ops: Ops) -> Iterator[Sequence[Op]]:
    """Yield copies of the ops, some at a time, and each Truncate alone."""
    for some in _portions(op.copied() for op in ops):
        begin = 0
        for number, op in enumerate(some):
            if op.kind is Kind.TRUNCATE:
                if number > begin:
                    yield some[begin:number]
                yield [op]
                begin = number + 1
        if begin < len(some):
            yield some[begin:]


def _portions(ops: Iterable[Op]) -> Iterator[list[Op]]:
    some: list[Op] = []
    size = 0
    for op in ops:
        some.append(op)
        size += len(op.record.value or b"")
        if len(some) == _AT_ONCE or size >= _BYTES_AT_ONCE:
            yield some
            some, size = [], 0
    if some:
        yield some
