"""The consumer library over a simulated database: effects happen once, whatever dies.

Its planner, batches, state rows and barrier are the real ones; what they ask of the
database comes here as the library's own statements. Two members of a group share the
partitions; each dies, and goes on after it lost a partition.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from consumer.decoder import Decoder
from consumer.group.assigned_partition import Place
from consumer.handler import Transaction
from consumer.op import Op
from consumer.state.batch import Batch, BatchOutcome, Moved
from consumer.state.partition_state import KnownState, PartitionState
from consumer.state.plan import Planner
from consumer.state.position import SnapshotChunk
from consumer.state.schema import Tables
from consumer.state.truncate_barrier import Barrier, Turn
from tests.simulation.database import AppRow, SimDatabase
from tests.simulation.group import Fetched
from tests.simulation.kafka import SimCluster
from tests.simulation.world import Violation
from walstream.op import Kind

_MEMBERS: Final = 2
_MOST_STEPS: Final = 20_000


class _Died(Exception):
    """The member's process ended, before its commit."""


@dataclass
class _Lane:
    """A partition, as one member knows it."""

    state: PartitionState
    known: KnownState

    @property
    def offset(self) -> int:
        return self.known.now.next_offset or 0


class SimGroup:
    """Two members that read all of some topics into one database."""

    def __init__(self, cluster: SimCluster, prefix: str, seed: int) -> None:
        self._cluster = cluster
        self._random = random.Random(seed)  # noqa: S311 - repeatable
        self._decoder = Decoder()
        self.database = SimDatabase()
        self._places = [
            Place(name, part)
            for name, topic in sorted(cluster.topics.items())
            if name.startswith(prefix)
            for part in range(len(topic.partitions))
        ]
        self._members: list[dict[Place, _Lane]] = [{} for _ in range(_MEMBERS)]

    def run(self) -> None:
        """Read until each partition is read to its end by the member that has it."""
        left = list(self._places)
        for _ in range(_MOST_STEPS):
            if not left:
                return
            place = self._random.choice(left)
            member = self._random.choice(self._members)
            if self._step(member, place):
                left.remove(place)
        raise Violation("liveness: the consumers never come to the end")

    def _step(self, member: dict[Place, _Lane], place: Place) -> bool:
        """Do one batch; True: there is nothing more to read."""
        lane = member.get(place)
        if lane is None or self._random.random() < 0.1:
            lane = member[place] = self._begun(place)
        records = self._cluster.topics[place.topic].partitions[place.partition]
        count = self._random.choice((1, 2, 5))
        messages = [
            Fetched(records[at], at)
            for at in range(lane.offset, min(len(records), lane.offset + count))
        ]
        if not messages:
            # a member that was told of all may be one that lost the partition
            return self._begun(place).known.row == lane.known.row
        try:
            self._try(lane, messages)
        except _Died:
            member.clear()
        except Moved:
            del member[place]
        return False

    def _begun(self, place: Place) -> _Lane:
        state = PartitionState("g", place, cast("Tables", self.database))
        with self.database.transaction():
            row = state.read(cast("Transaction", self.database))
        return _Lane(state, KnownState(row, row, {}))

    def _try(self, lane: _Lane, messages: list[Fetched]) -> None:
        known, tx = lane.known, cast("Transaction", self.database)

        def index_of(chunk: SnapshotChunk) -> int:
            known.chunks[chunk] = lane.state.read_chunk(tx, chunk)
            return known.chunks[chunk]

        plan = Planner(
            lane.state.place,
            known.now.position,
            known.now.source,
            index_of,
            reach=lane.state.reach,
            next_offset=known.now.next_offset or 0,
            decoder=self._decoder,
        ).plan(cast("Any", messages), 0, len(messages))
        if plan.foreign is not None:
            lane.known = replace(known, now=replace(known.now, source=plan.foreign))
            return
        if plan.poison is not None:
            raise Violation(f"the consumer finds a malformed record: {plan.poison[1]}")
        if not plan.ops:
            lane.known = replace(
                known, now=replace(known.now, next_offset=plan.next_offset)
            )
            return
        batch = Batch(lane.state, self._handle, 60.0, lambda: False)
        if plan.ops[0].kind is Kind.TRUNCATE and plan.ops[0].partitions:
            barrier = Barrier(lane.state, plan.ops[0], known.now.source)
            outcome = self._through(lambda: batch.run_barrier(tx, plan, known, barrier))
            if outcome.turn in {Turn.WAIT, Turn.BUSY}:
                return
        else:
            outcome = self._through(lambda: batch.run(tx, plan, known))
        lane.known = KnownState(
            outcome.kept, outcome.kept, {**known.chunks, **outcome.chunks}
        )

    def _through(self, run: Callable[[], BatchOutcome]) -> BatchOutcome:
        """Run a transaction; die before its commit, or before its answer."""
        fate = self._random.random()
        if fate < 0.05:
            with self.database.transaction():
                run()
                raise _Died
        outcome = run()
        if fate < 0.1:
            raise _Died
        return outcome

    def _handle(self, _tx: object, op: Op) -> None:
        table = self.database.tables.setdefault(op.table.full_name, {})
        part = -1 if op.kind is Kind.TRUNCATE else op.record.partition
        self.database.applying.append((op.record.topic, part, op.lsn, op.seq_id))
        if op.kind is Kind.TRUNCATE:
            table.clear()
            return
        source = op.old if op.kind is Kind.DELETE else op.new
        row = dict(source.items())
        key = row["id"]
        if op.kind is Kind.DELETE:
            table.pop(key, None)
            return
        before = table.get(key, {})
        kept = {name: before.get(name, "unsent") for name in source.absent}
        table[key] = row | kept

    def check(self, wanted: Mapping[str, Mapping[str, AppRow]]) -> None:
        """See that each op took effect once, and that the tables are the server's."""
        for name, count in self.database.applied.items():
            if count != 1:
                raise Violation(f"I11: {name} took effect {count} times")
        for table, rows in wanted.items():
            found = {
                key: {name: row.get(name) for name in rows.get(str(key), row)}
                for key, row in self.database.tables.get(table, {}).items()
            }
            if found != rows:
                raise Violation(
                    f"I11: the consumer's {table} has {found}, the server {rows}"
                )
