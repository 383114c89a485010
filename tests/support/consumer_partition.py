"""A partition of an idempotent consumer whose database and Kafka do as they are told.

The library's own code runs: its session, its batches, its state row. What it asks of
the database comes here as its own statements, and a transaction takes effect whole or
not at all.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, Final, cast

import psycopg
from psycopg.pq import TransactionStatus

from consumer.group.assigned_partition import AssignedPartition, Place
from consumer.group.buffer import Budget
from consumer.group.settings import FirstOffset
from consumer.handler import Transaction
from consumer.op import Op
from consumer.state.connection_pool import Connections
from consumer.state.partition_state import PartitionState, StateRow
from consumer.state.schema import Tables
from consumer.state.session import SessionOptions
from consumer.state.topic_guard import TopicGuard
from tests.simulation.database import SimDatabase
from tests.support.runtime import altered

PLACE: Final = Place("t", 0)


class Database(SimDatabase):
    """The application's database, which refuses what it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.refusals: list[Exception] = []  # of the statements to come
        self.refused_commits: list[Exception] = []  # of the transactions to come
        self.statements: list[str] = []

    @contextmanager
    def transaction(self) -> Iterator[None]:
        with super().transaction():
            yield
            if self.refused_commits:
                raise self.refused_commits.pop(0)

    def execute(self, _tx: object, statement: str, values: Any = ()) -> Any:
        self.statements.append(statement)
        if self.refusals:
            raise self.refusals.pop(0)
        return super().execute(_tx, statement, values)

    def asked(self, words: str) -> int:
        """Return how many statements had these words."""
        return sum(words in one for one in self.statements)

    def row(self, place: Place = PLACE, group: str = "g") -> StateRow:
        """Return what another member would read."""
        state = PartitionState(group, place, cast("Tables", self))
        with super().transaction():
            return state.read(cast("Transaction", self))

    def forget(self) -> None:
        """Delete all rows, as a person does."""
        self._state.clear()

    def put(self, before: StateRow, after: StateRow) -> None:
        """Move the row as another member would."""
        state = PartitionState("g", PLACE, cast("Tables", self))
        with super().transaction():
            assert state.move(cast("Transaction", self), str(self._xid), before, after)


class Session:
    """A connection that is lent."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.closed = self.broken = False
        self.pgconn = SimpleNamespace(transaction_status=TransactionStatus.INTRANS)

    def transaction(self) -> Any:
        return self._database.transaction()

    def close(self) -> None:
        self.closed = True


class Sessions:
    """Sessions of the consumer, lent and given back."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.lent: list[Session] = []
        self.returned: list[Session] = []
        self.away = False

    def take(self) -> Session:
        if self.away:
            raise psycopg.OperationalError("refused: row value 4711")
        self.lent.append(Session(self._database))
        return self.lent[-1]

    def give_back(self, tx: Session) -> None:
        self.returned.append(tx)


class Guard:
    """Kafka: what it says of the topic, and what it was asked."""

    def __init__(self) -> None:
        self.topic_id: str | None = "first"
        self.expected: list[Place] = []
        self.same: list[float] = []  # since when that was asked for
        self.questions: list[tuple[int | None, str | None, float]] = []
        self.first = 0  # offset of each partition
        self.begun: list[bool] = []  # from the latest on?
        self.count = 3
        self.counted = 0
        self.error: Exception | None = None

    def expect(self, place: Place) -> None:
        self.expected.append(place)

    def check(
        self, place: Place, offset: int | None, topic_id: str | None, since: float
    ) -> str | None:
        assert place == PLACE
        self.questions.append((offset, topic_id, since))
        if self.error is not None:
            raise self.error
        return self.topic_id

    def check_id(
        self, place: Place, _: int | None, topic_id: str | None, since: float
    ) -> str | None:
        assert (place, topic_id) == (PLACE, "first")
        self.same.append(since)
        if self.error is not None:
            raise self.error
        return self.topic_id

    def begins(
        self, topic: str, *, latest: bool
    ) -> tuple[dict[int, tuple[int, int]], str | None]:
        assert topic == PLACE.topic
        self.begun.append(latest)
        if self.error is not None:
            raise self.error
        bounds = self.first, self.first
        return dict.fromkeys(range(self.count), bounds), self.topic_id

    def partitions(self, topic: str) -> int:
        assert topic == PLACE.topic
        self.counted += 1
        if self.error is not None:
            raise self.error
        return self.count


class Lane(AssignedPartition):
    """A lane without threads; it notes where it is to seek."""

    others = 1  # lanes of the consumer

    def __init__(self) -> None:
        super().__init__(PLACE, lambda: None, Budget())
        self.urged = 0

    def urge(self) -> None:
        self.urged += 1

    def stop(self) -> None:
        self._stopping.set()

    @property
    def sought_to(self) -> int | None:
        """Return where it was told to seek since this was asked last."""
        found, self.wanted_offset = self.wanted_offset, None
        return found


class Surroundings:
    """All that one partition's work stands on."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.database = Database()
        self.sessions = Sessions(self.database)
        self.guard = Guard()
        self.lane = Lane()
        self.handled: list[int] = []  # offsets, of batches that were rolled back, too
        self.counts: dict[str, float] = {}

    @contextmanager
    def clock(self) -> Iterator[None]:
        """Let time stand still but for `now`; waits are as long as they may be."""
        with altered(monotonic=lambda: self.now, uniform=lambda _low, high: high):
            yield

    def options(self, **own: Any) -> SessionOptions:
        return SessionOptions(
            group="g",
            connections=cast("Connections", self.sessions),
            guard=cast("TopicGuard", self.guard),
            accept_source=own.get("accept_source"),
            frozen_s=7,
            begin=own.get("begin", FirstOffset.EARLIEST),
        )

    def state(self) -> PartitionState:
        return PartitionState("g", PLACE, cast("Tables", self.database))

    def count(self, measure: str, value: float, topic: str, partition: int) -> None:
        assert (topic, partition) == PLACE
        self.counts[measure] = self.counts.get(measure, 0) + value

    def handle(self, _tx: object, op: Op) -> None:
        """Handle an op with an effect that is committed, or not, with its batch."""
        self.handled.append(op.record.offset)
        self.database.applying.append((op.record.offset,))

    @property
    def applied(self) -> list[int]:
        """Return the offsets of the ops that took effect, each as often as it did."""
        found = self.database.applied.elements()
        return sorted(cast("int", offset) for (offset,) in found)
