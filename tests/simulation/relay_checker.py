"""What must hold of a chain: nothing is passed over, nor altered, nor stored too soon.

A record is named by its topic's id and its offset, which a header carries to the topics
behind the relay. A sink's partition has each name behind the one before it first.
"""

from collections.abc import Iterator
from typing import Final

from consumer.group.assigned_partition import Place
from tests.simulation.disk import Documents, read
from tests.simulation.group import Coordinator
from tests.simulation.kafka import Record, SimCluster
from tests.simulation.kafka_transactions import POSITIONS, KafkaTransaction
from tests.simulation.world import Process, Violation

UPSTREAM: Final = "a."
SINKS: Final = ("far", "off")
_OFFSET: Final = "offset"  # the header
_SOURCE: Final = "walstream-source"
_SETTLES_S: Final = 15.0  # after a topic was created again, and offsets were reset
_NEVER: Final = (-1, 0)
Name = tuple[int, int]
"""A topic's id, and an offset in it."""


class ChainChecker:
    """Invariants of a group's relays; each is told of its event as it happens."""

    def __init__(
        self, cluster: SimCluster, coordinator: Coordinator, *, transactional: bool
    ) -> None:
        self._cluster = cluster
        self._coordinator = coordinator
        self._world = cluster.world
        # of each sink's partition, up to where all of it is there
        self._front: dict[tuple[str, Place], Name] = {}
        self._accepted: dict[Place, Name] = {}  # what is before may be missing
        self._unsettled: dict[Place, float] = {}  # created again; for so long
        self.repeated = 0
        self.once = False  # may no record come again?
        # what is committed, and not read yet; who aborted it all the same, if anybody
        self._promised: dict[tuple[str, Place, Name], Process | None] = {}
        cluster.appended = self.read if transactional else self.appended
        cluster.transactions.decided = self.decided
        cluster.transactions.undone = self.undone
        cluster.beginning = self.beginning
        coordinator.storing = self.storing

    def _there(self, sink: str, place: Place) -> Name:
        """Return up to where a sink has all that nobody gave up."""
        none = self._made_of(place), 0  # a name of before is lower
        front = self._front.get((sink, place), none)
        return max(none, front, self._accepted.get(place, none))

    def _made_of(self, place: Place) -> int:
        return self._cluster.topics[place.topic].number

    def _is_unsettled(self, place: Place) -> bool:
        return self._world.now < self._unsettled.get(place, 0.0)

    # what happens

    def decided(self, transaction: KafkaTransaction) -> None:
        """Count what a coordinator committed: readers will have it."""
        for record in transaction.records:
            if record.topic != POSITIONS:
                self._promised[(*_aim(record), _offset_of(record))] = None
                self.appended(record)

    def read(self, record: Record) -> None:
        """See that what is read was committed."""
        if record.topic != POSITIONS:
            self._promised.pop((*_aim(record), _offset_of(record)), None)

    def undone(self, record: Record, by: Process | None) -> None:
        """Note what was committed, and is aborted: it has to be sent again."""
        if record.topic == POSITIONS:
            return
        promise = (*_aim(record), _offset_of(record))
        if promise in self._promised:
            if by is None or by.dead:  # the docs except it
                del self._promised[promise]
            else:
                self._promised[promise] = by

    def excuse(self, process: Process) -> None:
        """Forget what a start that is killed was to send again, as the docs do."""
        for promise in [one for one, by in self._promised.items() if by is process]:
            del self._promised[promise]

    def appended(self, record: Record) -> None:
        """See that it is the next one of its partition, or one that came before."""
        sink, place = _aim(record)
        made, offset = found = _offset_of(record)
        if made != self._made_of(place):
            return  # of a topic that is no more
        if _unsourced(record) != _unsourced(
            self._coordinator.log.records(place)[offset]
        ):
            raise Violation(f"chain: {place} {offset} was altered on its way")
        there = self._there(sink, place)
        if found < there:
            self.repeated += 1
            if self.once:
                raise Violation(f"twice: {record.topic} has {place} {found} again")
        elif found == there:
            self._front[sink, place] = made, offset + 1
        elif not self._is_unsettled(place):
            raise Violation(f"chain: {record.topic} has {place} {found} after {there}")

    def storing(self, place: Place, offset: int) -> None:
        """See that all below an offset is there before it is stored."""
        if self._is_unsettled(place):
            return
        for sink in SINKS:
            there = self._there(sink, place)
            if there < (self._made_of(place), offset):
                raise Violation(
                    f"chain: {offset} of {place} is stored, and {sink} has {there}"
                )

    def beginning(self, record: Record) -> None:
        """See that a producer's first record names the source, if any before did."""
        if record.topic == POSITIONS:
            return
        _, place = _aim(record)
        made, offset = _offset_of(record)
        if made != self._made_of(place):
            return
        log = self._coordinator.log
        before = log.records(place)[log.low.get(place, 0) : offset + 1]
        named = any(_SOURCE in dict(one.headers) for one in before)
        if named and _SOURCE not in dict(record.headers):
            raise Violation(f"chain: nobody knows the source of {place} {offset}")

    def began(self, place: Place, offset: int, documents: Documents) -> None:
        """See that nobody begins again what he knows that it was begun.

        What is below was not the group's, if it knew nothing yet.
        """
        begun = read(documents, "group") or {"topics": {}}
        known = any(one.topic == place.topic for one in self._coordinator.offsets)
        if place.topic in begun["topics"] and not known:
            raise Violation(f"chain: {place} is begun again by who stored its offsets")
        none = self._made_of(place), 0
        if not known or self._accepted.get(place, _NEVER) < none:
            self._accept(place, offset)

    # what operators do

    def recreated(self, place: Place) -> None:
        """Let a relay find out that its topic is another one."""
        self._unsettled[place] = float("inf")

    def reset(self, place: Place) -> None:
        """Have the group go on with the oldest record that there is."""
        self._accept(place, self._coordinator.log.low.get(place, 0))
        if place in self._unsettled:
            for sink in SINKS:
                self._front.pop((sink, place), None)
            self._unsettled[place] = self._world.now + _SETTLES_S

    def _accept(self, place: Place, offset: int) -> None:
        """Miss nothing of what is below."""
        name = self._made_of(place), offset
        self._accepted[place] = max(name, self._accepted.get(place, name))

    # what has to be in the end

    def left(self) -> Iterator[str]:
        """Name the partitions that are not in every sink, or not stored as such.

        And what is committed, and not read.
        """
        if self._promised:
            yield f"committed, and not read: {sorted(self._promised)}"
        log = self._coordinator.log
        for place in log.visible:
            end = len(log.records(place))
            there = min(self._there(sink, place) for sink in SINKS)
            stored = self._coordinator.offsets.get(place, 0)
            if there < (self._made_of(place), end) or stored < end:
                yield f"{place} of {end}: {there}, {stored} is stored"


def named(records: list[Record], made: int) -> list[Record]:
    """Give each record of a topic the header by which it is known behind the relay."""
    found = []
    for offset, record in enumerate(records):
        kept = tuple(one for one in record.headers if one[0] != _OFFSET)
        name = (_OFFSET, f"{made} {offset}".encode())
        found.append(record._replace(headers=(*kept, name)))
    return found


def upstream_of(topic: str) -> str:
    """Return the topic whose records go into one of a sink."""
    return UPSTREAM + topic.partition(".")[2]


def _aim(record: Record) -> tuple[str, Place]:
    sink = record.topic.partition(".")[0]
    return sink, Place(upstream_of(record.topic), record.partition)


def _offset_of(record: Record) -> Name:
    made, offset = dict(record.headers)[_OFFSET].split()
    return int(made), int(offset)


def _unsourced(record: Record) -> tuple[object, ...]:
    headers = tuple(one for one in record.headers if one[0] != _SOURCE)
    return record.key, record.value, headers
