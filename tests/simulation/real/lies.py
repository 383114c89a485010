"""Ways in which the simulation could be wrong: a comparison has to notice each.

Each is what stands in for an attribute of the simulation, while it is told.
"""

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from tests.simulation import kafka, tables
from tests.simulation.kafka import QUEUE, SimCluster, SimProducer
from tests.simulation.kafka_transactional import SimTransactionalProducer
from tests.simulation.kafka_transactions import TransactionLog
from tests.simulation.real import brokers
from tests.simulation.server import SimServer
from tests.simulation.tables import SimTable
from tests.simulation.walsender import SimSlot, SimWalsender
from walstream import testing
from walstream.pipeline.pgoutput import Update
from walstream.postgres.catalog import TableFacts
from walstream.sources.postgres.incremental.chunk import Visibility

_begin: Final = SimWalsender._begin
_relation: Final = SimTable.relation
_facts: Final = SimTable.facts
_request: Final = SimProducer._request
_store: Final = SimProducer._store
_mark: Final = TransactionLog._mark
_began: Final = TransactionLog.begin
_ended: Final = TransactionLog.end
_encode: Final = testing.encode


def _begun_with_messages(self: SimWalsender, text: str) -> None:
    _begin(self, text)
    self.messages = True


def _begun_behind(self: SimWalsender, text: str) -> None:
    _begin(self, text)
    self._next = bisect_right(self.server.commits, self.start)


def _begun_by_wish(self: SimWalsender, text: str) -> None:
    _begin(self, text)
    if self.start == self.slot.confirmed:  # type: ignore[union-attr]
        self._next = 0


def _shared(self: SimWalsender, text: str) -> None:
    for slot in self.server.slots.values():
        slot.reader = None
    _begin(self, text)


def _keyless(self: SimTable, shape: Any) -> Any:
    relation = _relation(self, shape)
    for column in relation.columns:
        column.is_key = column.name == "id"
    return relation


def _unnumbered(self: SimTable, *others: Any) -> TableFacts:
    facts = _facts(self, *others)
    numbers = tuple(range(1, len(facts.columns) + 1))
    return TableFacts(**{**_fields(facts), "numbers": numbers})


def _fields(facts: TableFacts) -> dict[str, Any]:
    return {name: getattr(facts, name) for name in TableFacts.__dataclass_fields__}


def _old_row_left_out(message: Any) -> bytes:
    if isinstance(message, Update):
        message.old = None
    return _encode(message)


def _confirmed_back(_server: SimServer, slot: SimSlot, lsn: int) -> None:
    slot.confirmed = lsn


def _all_seen(self: SimServer) -> Visibility:
    return Visibility(self._next_xid)


def _copied_at_end(self: SimServer, _connection: object, _name: str, to: str) -> None:
    self.slots[to] = SimSlot(to, self.wal_end, self.wal_end)


def _dropped(self: SimServer, _connection: object, name: str) -> None:
    self.slots.pop(name, None)


def _stored_each_time(self: SimProducer, place: tuple[str, int]) -> None:
    if self._cluster.away:  # the answer is lost
        self._cluster.append(self._queues[place][0].record)
    _request(self, place)


def _stored_when_purged(self: SimProducer) -> None:
    for queue in self._queues.values():
        _store(self, [*queue])
        queue.clear()


def _recreated(self: SimCluster, name: str) -> None:
    self._made += 1
    self.topics[name].number = self._made


def _marked_committed(
    self: TransactionLog, *place: Any, commits: bool, by: Any
) -> None:
    del commits
    _mark(self, *place, commits=True, by=by)


def _marked_without_offset(
    self: TransactionLog, name: str, place: Any, topic: Any, **how: Any
) -> None:
    _mark(self, name, place, topic, **how)
    topic.partitions[place[1]].pop()
    topic.fates[place[1]].of.pop()


def _begun_of_old(self: TransactionLog, name: str, by: Any) -> int | None:
    epoch = _began(self, name, by)
    if epoch:
        self._ids[name].epoch = epoch = 0
    return epoch


def _taken_over_open(self: TransactionLog, name: str, by: Any) -> int | None:
    if name in self._ids:
        self._ids[name].current = None
    return _began(self, name, by)


def _ended_committed(
    self: TransactionLog, name: str, epoch: int, *, commits: bool, by: Any
) -> object:
    del commits
    return _ended(self, name, epoch, commits=True, by=by)


def _all_read(topic: Any, number: int, *, committed: bool) -> int:  # noqa: ARG001
    return len(topic.partitions[number])


def _nothing(*_: object) -> None:
    return None


Lie = tuple[object, str, object]
POSTGRES: Final[dict[str, Lie]] = {
    "a table is described once": (SimWalsender, "_forget", _nothing),
    "messages are told to all": (SimWalsender, "_begin", _begun_with_messages),
    "a commit record that is confirmed is over": (
        SimWalsender,
        "_begin",
        _begun_behind,
    ),
    "all is told again": (SimWalsender, "_begin", _begun_by_wish),
    "a slot has several readers": (SimWalsender, "_begin", _shared),
    "FULL has a key": (SimTable, "relation", _keyless),
    "columns are numbered anew": (SimTable, "facts", _unnumbered),
    "an update has no old row": (tables, "encode", _old_row_left_out),
    "what is unchanged is NULL": (tables, "UNCHANGED", None),
    "a confirmation goes back": (SimServer, "confirm", _confirmed_back),
    "a confirmation is forgotten": (SimServer, "confirm", _nothing),
    "all transactions are seen": (SimServer, "snapshot", _all_seen),
    "a copy begins at the end": (SimServer, "copy", _copied_at_end),
    "a slot that is read is dropped": (SimServer, "drop", _dropped),
}
KAFKA: Final[dict[str, Lie]] = {
    "what is dropped arrives": (SimProducer, "die", _stored_when_purged),
    "a topic keeps its records": (SimCluster, "recreate", _recreated),
    "the queue has more room": (kafka, "QUEUE", QUEUE + 1),
    "everything is taken": (SimProducer, "_refused", _nothing),
    "a producer goes on": (SimProducer, "fail", _nothing),
    "a request that is sent again is stored again": (
        SimProducer,
        "_request",
        _stored_each_time,
    ),
}
TRANSACTIONS: Final[dict[str, Lie]] = {
    "what was aborted is read": (TransactionLog, "_mark", _marked_committed),
    "an end takes no offset": (TransactionLog, "_mark", _marked_without_offset),
    "who was taken over goes on": (TransactionLog, "begin", _begun_of_old),
    "who takes over ends nothing": (TransactionLog, "begin", _taken_over_open),
    "an abort commits": (TransactionLog, "end", _ended_committed),
    "what is open is read": (brokers, "end_of", _all_read),
    "nothing is too old": (TransactionLog, "_expire", _nothing),
    "a fence is not fatal": (SimTransactionalProducer, "_be_fenced", _nothing),
}


@contextmanager
def told(lie: Lie) -> Iterator[None]:
    """Have the simulation be wrong, until the end of the block."""
    owner, name, wrong = lie
    right = getattr(owner, name)
    setattr(owner, name, wrong)
    try:
        yield
    finally:
        setattr(owner, name, right)
