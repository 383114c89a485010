"""Transactions of a simulated Kafka: their coordinator, their markers, who reads what.

A coordinator ends a transaction at once, and its markers reach the partitions later. A
partition that has no leader just then gets none (KAFKA-20734): what is open there is
ended by the next marker of the same transactional id.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from zlib import crc32

from confluent_kafka import KafkaError

from tests.simulation.world import Process

if TYPE_CHECKING:
    from tests.simulation.kafka import Record, SimCluster, SimTopic

POSITIONS: Final = "b.positions"
_EXPIRY_S: Final = 10.0  # between two looks for transactions that are too old
Place = tuple[str, int]


@dataclass
class Fates:
    """What became of each record of a partition: read, left out, or not decided."""

    of: list[bool | None] = field(default_factory=list)
    open: dict[str, list[int]] = field(default_factory=dict)  # offsets, by id
    told: int = 0  # below, readers have what they may read

    @property
    def stable(self) -> int:
        """The last stable offset: readers of what is committed get nothing behind."""
        return min((offsets[0] for offsets in self.open.values()), default=len(self.of))


@dataclass(eq=False)
class KafkaTransaction:
    """One transaction, as its coordinator knows it."""

    began: float
    places: dict[Place, "SimTopic"] = field(default_factory=dict)
    records: "list[Record]" = field(default_factory=list)


@dataclass
class _Id:
    """One transactional id."""

    epoch: int = -1
    current: KafkaTransaction | None = None
    markers: int = 0  # that are on their way: nothing begins before they are there
    # where markers were left out one after the other, and how many
    unmarked: Counter[Place] = field(default_factory=Counter)


def _nothing(_record: object, _by: object) -> None:
    pass


def _fenced() -> KafkaError:
    code = KafkaError._FENCED
    return KafkaError(code, "another producer has this transactional id", fatal=True)


class TransactionLog:
    """The coordinators of a cluster, and what they decided."""

    def __init__(self, cluster: "SimCluster") -> None:
        self._cluster = cluster
        self._world = cluster.world
        self._ids: dict[str, _Id] = {}
        self.leaderless: dict[Place, float] = {}  # until when
        self.hidden: set[str] = set()  # ids of which a position lacked its marker
        # where transactions of one id are open together: one marker ends them all
        self.mixed: set[Place] = set()
        # a transaction is committed, though nobody can read it yet
        self.decided: Callable[[KafkaTransaction], None] = lambda _transaction: None
        # what was committed was aborted all the same, by whom
        self.undone: Callable[[Record, Process | None], None] = _nothing

    def has_leader(self, place: Place) -> bool:
        return self._world.now >= self.leaderless.get(place, 0.0)

    def begin(self, name: str, by: Process | None) -> int | None:
        """Give an id's next epoch, once what is open has ended; None: not yet."""
        one = self._ids.setdefault(name, _Id())
        if one.markers:
            return None
        one.epoch += 1
        if one.current is not None:
            self._end(name, one, commits=False, by=by)
            return None
        return one.epoch

    def add(self, name: str, epoch: int, place: Place, lasts_s: float) -> object:
        """Have a place in the transaction; None: not yet, as the last one still ends.

        Return an error for a producer that another one took over.
        """
        one = self._ids[name]
        if epoch != one.epoch:
            return _fenced()
        if one.markers:
            return None
        if one.current is None:
            one.current = begun = KafkaTransaction(self._world.now)
            # not drawn: what the schedules draw that were found stays as it was
            late = crc32(f"{name} {begun.began:.6f}".encode()) % 1000 / 1000
            until_s = lasts_s + late * _EXPIRY_S
            self._world.at(until_s, lambda: self._expire(name, begun))
        one.current.places[place] = self._cluster.topics[place[0]]
        return True

    def _expire(self, name: str, begun: KafkaTransaction) -> None:
        one = self._ids[name]
        if one.current is begun:
            one.epoch += 1
            self._end(name, one, commits=False, by=None)

    def takes(self, name: str, epoch: int, place: Place) -> bool:
        """Return whether a partition takes a producer's records."""
        one = self._ids[name]
        current = one.current
        return epoch == one.epoch and current is not None and place in current.places

    def append(self, name: str, record: "Record") -> int:
        """Store a record of the open transaction; return its offset."""
        current = self._ids[name].current
        assert current is not None  # it takes it
        topic = current.places[record.topic, record.partition]
        fates = _fates(topic, record.partition)
        stored = topic.partitions[record.partition]
        stored.append(record)
        fates.of.append(None)
        fates.open.setdefault(name, []).append(len(stored) - 1)
        current.records.append(record)
        self._world.note(
            f"in {name} {record.topic} {record.partition}", record.value or b""
        )
        return len(stored) - 1

    def end(
        self, name: str, epoch: int, *, commits: bool, by: Process | None
    ) -> object:
        """End what is open; None: not yet. Return an error as `add` does."""
        one = self._ids[name]
        if epoch != one.epoch:
            return _fenced()
        if one.markers:
            return None
        if one.current is not None:
            self._end(name, one, commits=commits, by=by)
        return True

    def _end(self, name: str, one: _Id, *, commits: bool, by: Process | None) -> None:
        ended, one.current = one.current, None
        assert ended is not None
        self._world.note(f"{'commit' if commits else 'abort'} {name}")
        if commits:
            self.decided(ended)
        one.markers = len(ended.places)
        for place, topic in ended.places.items():
            self._send(name, one, place, topic, commits, by)

    def _send(  # noqa: PLR0913, PLR0917 - a marker's parts
        self,
        name: str,
        one: _Id,
        place: Place,
        topic: "SimTopic",
        commits: bool,
        by: Process | None,
    ) -> None:
        def arrive() -> None:
            if self._cluster.away:
                self._send(name, one, place, topic, commits, by)
                return
            one.markers -= 1
            if self.has_leader(place):
                one.unmarked.pop(place, None)
                self._mark(name, place, topic, commits=commits, by=by)
            else:
                self._world.note(f"no marker {name} {place}")
                one.unmarked[place] += 1
                if one.unmarked[place] > 1:
                    self.mixed.add(place)
                if place[0] == POSITIONS:
                    self.hidden.add(name)

        self._world.at(self._cluster.delay("", 0), arrive)

    def _mark(
        self,
        name: str,
        place: Place,
        topic: "SimTopic",
        *,
        commits: bool,
        by: Process | None,
    ) -> None:
        """Write a marker: all that the id has open in the partition is ended."""
        if self._cluster.topics.get(place[0]) is not topic:
            return  # it was deleted
        stored, fates = topic.partitions[place[1]], _fates(topic, place[1])
        for offset in fates.open.pop(name, ()):
            fates.of[offset] = commits
            if not commits:
                self.undone(stored[offset], by)
        stored.append(self._cluster.marker(place))
        fates.of.append(False)
        self._tell(stored, fates)

    def append_alone(self, topic: "SimTopic", record: "Record") -> int:
        """Store a record of no transaction; return its offset."""
        fates, stored = topic.fates.get(record.partition), topic.partitions
        stored[record.partition].append(record)
        if fates is None:
            self._cluster.appended(record)
        else:
            fates.of.append(True)
            self._tell(stored[record.partition], fates)
        return len(stored[record.partition]) - 1

    def _tell(self, stored: "list[Record]", fates: Fates) -> None:
        """Let readers have what they may read now."""
        stable = fates.stable
        while fates.told < stable:
            at = fates.told
            fates.told += 1
            if fates.of[at]:
                self._cluster.appended(stored[at])

    def take_over(self) -> None:
        """Have a producer elsewhere begin each id's next epoch, and send nothing."""
        for name in self._ids:
            self.begin(name, None)

    def hanging(self) -> Iterator[Place]:
        """Yield the partitions where something is open."""
        for name, topic in self._cluster.topics.items():
            for number, fates in topic.fates.items():
                if fates.open and name != POSITIONS:
                    yield name, number


def _fates(topic: "SimTopic", number: int) -> Fates:
    """Return those of a partition; what it had before is read."""
    found = topic.fates.get(number)
    if found is None:
        before = len(topic.partitions[number])
        found = topic.fates[number] = Fates([True] * before, told=before)
    return found


def readable(topic: "SimTopic", number: int, at: int, *, committed: bool) -> bool:
    """Return whether a reader of what is committed, or of all, gets a record."""
    fates = topic.fates.get(number)
    if fates is None:
        return True
    if committed:
        return bool(fates.of[at])
    record = topic.partitions[number][at]
    return not (record.key is record.value is None)


def end_of(topic: "SimTopic", number: int, *, committed: bool) -> int:
    """Return where a reader of what is committed, or of all, finds the end."""
    fates = topic.fates.get(number)
    if fates is None or not committed:
        return len(topic.partitions[number])
    return fates.stable


def settle(cluster: "SimCluster") -> None:
    """Leave in the topics what readers of committed records read of them."""
    for topic in cluster.topics.values():
        for number, fates in topic.fates.items():
            kept = zip(topic.partitions[number], fates.of, strict=True)
            topic.partitions[number] = [record for record, fate in kept if fate]
        topic.fates.clear()
