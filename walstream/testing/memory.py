"""A slot, positions and a companion in memory: `pipeline.ports` without a server."""

import os
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Self

import orjson

from walstream.errors import StateDamaged, WalstreamError
from walstream.lsn import Lsn
from walstream.op import ReplicationOp
from walstream.pipeline.column_history import NO_FACTS, FactHistory, Labels
from walstream.pipeline.pgoutput.messages import Relation
from walstream.pipeline.ports import POSITION, Position
from walstream.pipeline.root_key import Place
from walstream.pipeline.row_key import KeyHistory
from walstream.pipeline.state_document import Entries
from walstream.row import UNCHANGED


def _nothing() -> None:
    pass


class MemorySource:
    """Frames in the order given; keeps what it was told."""

    def __init__(
        self,
        frames: Iterable[bytes] = (),
        *,
        batches: Iterable[int] = (),
        on_exhausted: Callable[[], None] = _nothing,
        ending: Exception | None = None,
    ) -> None:
        """Each `read` gives as many frames as the next of `batches`, 0 for none yet.

        Reading on behind the last frame calls `on_exhausted`, and raises `ending`.
        """
        self._frames = deque(frames)
        self._batches = iter(batches)
        self._on_exhausted = on_exhausted
        self._ending = ending
        self._out, self._in = os.pipe()
        os.write(self._in, b"\0")  # there is always something to read, or to hear
        self.confirmed: list[Lsn] = []
        self.status_updates = 0  # that were asked for at once
        self.paused = 0
        self.drained = False  # does it say so of its last read?

    def feed(self, *frames: bytes) -> None:
        """Add frames behind those that are left."""
        self._frames.extend(frames)

    def read(self, limit: int) -> list[bytes]:
        if not self._frames:
            self._on_exhausted()
            if self._ending is not None:
                raise self._ending
        size = min(limit, next(self._batches, limit), len(self._frames))
        return [self._frames.popleft() for _ in range(size)]

    @property
    def unread(self) -> int:
        return len(self._frames)

    def confirm(self, lsn: Lsn) -> None:
        self.confirmed.append(lsn)

    def keep_alive(self, *, now: bool = False) -> None:
        self.status_updates += now

    def still_paused(self) -> None:
        self.paused += 1

    def fileno(self) -> int:
        return self._out

    def close(self) -> None:
        os.close(self._out)
        os.close(self._in)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


class MemoryStore:
    """Documents by name, as bytes: what is read was never shared with its writer."""

    def __init__(self, documents: Entries | None = None) -> None:
        self._documents: dict[str, bytes] = {}
        self.stored: list[Position] = []  # every one, in order
        if documents:
            self.write(documents)

    def read(self, name: str) -> object | None:
        document = self._documents.get(name)
        return None if document is None else orjson.loads(document)

    def names(self, prefix: str) -> list[str]:
        return sorted(name for name in self._documents if name.startswith(prefix))

    def tree(self, name: str) -> dict[str, object]:
        return {
            one: self.read(one)
            for one in self._documents
            if one == name or one.startswith(f"{name}/")
        }

    def damaged(self, what: str) -> WalstreamError:
        return StateDamaged(what)

    def write(self, documents: Entries) -> None:
        for name, document in documents.items():
            if document is None:
                self._documents.pop(name, None)
            else:
                self._documents[name] = orjson.dumps(document)

    def position(self) -> Position | None:
        return POSITION.read(self)

    def store(self, position: Position, beside: Entries | None = None) -> None:
        previous = self.position()
        if previous is not None and position.resume < previous.resume:
            raise WalstreamError("a position below the stored one")
        self.write({**POSITION.entry(position), **(beside or {})})
        self.stored.append(position)


class MemoryCompanion:
    """Knows the keys of tables beforehand.

    Says "not yet" `patience` times before each answer, and calls `wake` each time.
    """

    def __init__(
        self,
        histories: Mapping[str, KeyHistory] | None = None,  # by `schema.table`
        *,
        toasted: str = "read",
        patience: int = 0,
        wake: Callable[[], None] = _nothing,
    ) -> None:
        self._histories = dict(histories or {})
        self._toasted = toasted
        self._patience = patience
        self._wake = wake
        self._asked = 0
        self.completed: list[ReplicationOp] = []
        self.pauses = 0
        self.error: Exception | None = None  # raised by the next tick

    def _not_yet(self) -> bool:
        self._asked += 1
        if self._asked % (self._patience + 1) == 0:
            return False
        self._wake()
        return True

    def keys(
        self, relation: Relation, _xid: int = 0, _place: Place = (0, 0)
    ) -> KeyHistory | None:
        if self._not_yet():
            return None
        name = f"{relation.namespace}.{relation.name}"
        return self._histories.setdefault(name, KeyHistory([]))

    def facts(
        self,
        _relation: Relation,
        _xid: int = 0,
        _place: Place = (0, 0),
        _labels: Labels = (),
    ) -> FactHistory:
        return NO_FACTS

    def complete(self, op: ReplicationOp) -> bool:
        if op.new is None or UNCHANGED not in op.new:
            return True
        if self._not_yet():
            return False
        op.new = [self._toasted if value is UNCHANGED else value for value in op.new]
        self.completed.append(op)
        return True

    def tick(self, *, paused: bool) -> None:
        self.pauses += paused
        if self.error is not None:
            raise self.error
