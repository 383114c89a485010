"""The partitions that are ours now: their offsets, and what was read but not sent."""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping

from walstream.errors import HistoryError, Repair
from walstream.kafka.group import StoredOffset
from walstream.kafka.offsets import Partition
from walstream.kafka.topic_metadata import Described
from walstream.kafka.topic_reader import TopicRecord
from walstream.sources.kafka.offset_ledger import Offsets, Portion
from walstream.sources.kafka.offset_metadata import read
from walstream.telemetry import runtime

Storing = Mapping[Partition, tuple[int, str]]
"""Offsets, and what is kept beside them."""


class Assignment:
    """Assigned partitions, and the progress of each."""

    def __init__(self, repair: Callable[[str], Repair]) -> None:
        """`repair` lets the group start a topic again."""
        self._repair = repair
        self.offsets: dict[Partition, Offsets] = {}
        self.pending: deque[TopicRecord] = deque()
        self._portions: dict[Partition, Portion] = {}  # of what was read last

    def take(
        self, stored: Mapping[Partition, StoredOffset], topics: Mapping[str, Described]
    ) -> list[Partition]:
        """Continue at the group's offsets; raise if these records are gone.

        Return those that begin another replay: the group is to know of it first.
        """
        replayed: list[Partition] = []
        for place, known in stored.items():
            note = read(known.note)
            identity = topics[place.topic].identity
            if note.topic and note.topic != identity and known.offset is not None:
                raise HistoryError(
                    f"topic {place.topic!r} was deleted and created again: the "
                    "group's offsets are those of the old one",
                    hint="tell the readers; then let the group start with the oldest "
                    "existing record",
                    repair=self._repair(place.topic),
                )
            if not note.topic or note.topic != identity:
                # an operator set it: positions in Kafka, which may lie beyond what is
                # to be read again, count no more, whatever is stored from here on
                note = note._replace(topic=identity, replay=runtime.token_hex(8))
                self.offsets[place] = offsets = Offsets(note)
                offsets.reached = known.offset or 0  # to be stored, with the note
                replayed.append(place)
                continue
            self.offsets[place] = offsets = Offsets(note)
            offsets.stored = known.offset
        return replayed

    def leave(self, places: Collection[Partition]) -> None:
        """Forget partitions that are no longer assigned."""
        gone = set(places)
        self.drop_pending(gone)
        for place in gone:
            self.offsets.pop(place, None)

    def drop_pending(self, places: Collection[Partition]) -> None:
        """Send nothing more of what was read of these."""
        kept = (one for one in self.pending if place_of(one) not in places)
        self.pending = deque(kept)
        for place in places:
            self._portions.pop(place, None)
            if place in self.offsets:
                self.offsets[place].close()

    def add(self, records: Iterable[TopicRecord]) -> None:
        self.pending.extend(records)

    def portion(self, place: Partition, offset: int) -> Portion:
        """Find what a partition's records are counted in."""
        found = self._portions.get(place)
        if found is None:
            found = self._portions[place] = self.offsets[place].begin(offset)
        return found

    def close_portions(self) -> None:
        """Start again with the next read."""
        for place in self._portions:
            self.offsets[place].close()
        self._portions = {}

    def undelivered(self, places: Iterable[Partition] | None = None) -> int:
        found = self.offsets if places is None else places
        return sum(
            self.offsets[place].undelivered for place in found if place in self.offsets
        )

    def due(self, places: Iterable[Partition] | None = None) -> Storing:
        """Return what the group was not told yet, and take it for told."""
        found: dict[Partition, tuple[int, str]] = {}
        for place in list(self.offsets if places is None else places):
            offsets = self.offsets.get(place)
            if offsets is not None and (reached := offsets.due) is not None:
                found[place] = reached, offsets.reached_note.written()
                offsets.stored = reached
        return found

    def tell_again(self, places: Iterable[Partition]) -> None:
        """Store these again: the group was not told."""
        for place in places:
            if place in self.offsets:
                self.offsets[place].stored = None

    def pass_over(self, positions: Mapping[Partition, int]) -> None:
        """Note what was read so far, while nothing of it is left to be sent."""
        for place, position in positions.items():
            if place in self.offsets and not self.pending:
                self.offsets[place].pass_over(position)

    def take_delivered(self) -> int:
        return sum(one.take_delivered() for one in self.offsets.values())

    def lag(self, ends: Mapping[Partition, int]) -> int | None:
        """Count what waits below these ends; None: nothing is known yet."""
        behind = []
        for place, end in ends.items():
            offsets = self.offsets.get(place)
            if offsets is None:
                continue
            at = offsets.reached if offsets.reached is not None else offsets.stored
            if at is not None:
                behind.append(max(0, end - at))
        return sum(behind) if behind else None


def place_of(record: TopicRecord) -> Partition:
    """Name the partition that a record was in."""
    return Partition(record.topic, record.partition)


def wait_for(
    holds: Callable[[], bool], serve: Callable[[], object], until: Callable[[], bool]
) -> bool:
    """Serve until it holds; False: an end came first."""
    while not holds():
        if until():
            return False
        serve()
        runtime.sleep(0.005)
    return True
