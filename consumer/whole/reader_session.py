"""One reading of a group's topics, from the stored state on."""

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from consumer.decoder import Decoder
from consumer.errors import ForeignSource, Incomplete
from consumer.group.assigned_partition import Place
from consumer.metrics import Measure, Metrics
from consumer.poison import OnPoison
from consumer.state.batch import Moved
from consumer.state.position import SnapshotChunk
from consumer.state.source import AcceptSource, accepts
from consumer.state.topic_guard import TopicGuard
from consumer.whole.assembler import TransactionAssembler
from consumer.whole.due import Due
from consumer.whole.explanation import ForeignWatch
from consumer.whole.group_state import GroupRow, GroupState, PlaceRow
from consumer.whole.intake import Intake
from consumer.whole.lane import Lane
from consumer.whole.open_transaction import Gap
from consumer.whole.partition_reader import PartitionReader, TopicChoice
from consumer.whole.pile import Piles
from walstream.errors import ConfigError, Transient
from walstream.lsn import Lsn, show
from walstream.telemetry import runtime

_POLL_S: Final = 0.1
_POLL_ASKING_S: Final = 0.005
_TOPICS_S: Final = 10.0  # between looks for new topics and partitions
_UNKNOWN_S: Final = 0.5  # where a transaction has records in one that is not read
_ENDS_S: Final = 2.0  # between questions for ends, for lag() alone
_PATIENCE_S: Final = 5.0  # with what seems incomplete
_WARN_S: Final = 60.0
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReaderOptions:
    group: str
    transactions: str
    topics: TopicChoice
    memory: int
    decoder: Decoder
    accept_source: AcceptSource
    on_poison: OnPoison
    metrics: Metrics
    guard: TopicGuard
    state: GroupState


class ReaderSession:
    """One reader's open transactions, and the offsets to keep."""

    def __init__(
        self,
        options: ReaderOptions,
        reader: PartitionReader,
        row: GroupRow,
        reach: Mapping[Place, Lsn],
        index_of: Callable[[Place, SnapshotChunk], int],
    ) -> None:
        self._options = options
        self._reader = reader
        self.row = row
        self._reach = reach
        self._spine = Place(options.transactions, 0)
        self._piles = Piles(options.memory, options.decoder.op_of)
        self.assembler = TransactionAssembler(
            self._piles, options.topics, index_of, position=row.lsn
        )
        self._feed = Intake(
            self.assembler,
            options.decoder,
            transactions=options.transactions,
            source=row.source,
            on_poison=options.on_poison,
            poisoned=lambda place: options.metrics(Measure.POISON, 1, *place),
        )
        self._ids: dict[str, str | None] = {}
        self._question = 0
        self._next_topics = self._next_ends = 0.0
        self._gap: tuple[Gap, float, int | None] | None = None
        self._waits: tuple[Lsn, float] = (0, 0.0)
        self._foreign = ForeignWatch(options.group, self._spine.topic, _WARN_S)
        self.added = False  # lanes that the state does not know

    def begin(self) -> None:
        """Read on where the state says; raise Transient, or what stops the group."""
        asked_at, row, guard = runtime.monotonic(), self.row, self._options.guard
        start = row.next_offset if row.version else None
        guard.expect(self._spine)
        self._ids[self._spine.topic] = guard.check(
            self._spine, start, row.topic_id, asked_at
        )
        if (count := guard.partitions(self._spine.topic)) != 1:
            raise ConfigError(
                f"{self._spine.topic} has {count} partitions, which have no order",
                hint="let the sink write to another topic, which walstream creates with"
                " one (txinfo)",
            )
        self._add_topics()
        first, _ = guard.bounds(self._spine)
        at = first if start is None else start
        self.assembler.pass_told(at)
        self._reader.read({self._spine: at})

    def close(self) -> None:
        self._piles.close()

    # --- reading

    def step(self) -> None:
        """Read some messages, and see to what they need."""
        assembler, reader = self.assembler, self._reader
        wait_s = _POLL_ASKING_S if reader.is_asking else _POLL_S
        if (messages := reader.poll(wait_s)) and assembler.skipped:
            self._count_skipped()
        for message in messages:
            self._feed.put(message)
        if (ends := reader.ends()) is not None:
            assembler.answer(self._question, ends)
        now = runtime.monotonic()
        if not reader.is_asking and (assembler.wants_ends or now >= self._next_ends):
            self._next_ends = now + _ENDS_S
            self._question = assembler.ask()
            reader.ask_ends([*assembler.lanes, self._spine])
        if again := self._feed.release():
            reader.seek(again)
        wanted_at = self._next_topics - (_TOPICS_S - _UNKNOWN_S) * bool(
            assembler.unknown
        )
        if now >= wanted_at:
            with suppress(Transient):  # it is asked again
                self._add_topics()
        self._attend(now)
        idle = set[Place]()
        if assembler.bytes > self._options.memory:
            idle = assembler.lanes.keys() - assembler.needed()
        if assembler.is_told_ahead:
            idle.add(self._spine)
        reader.let_rest(idle)

    def _attend(self, now: float) -> None:
        self._look_for_gap(now)
        self._foreign.look(now, self.assembler.lanes.values())
        lsn = self.assembler.position
        if lsn != self._waits[0] or self.assembler.is_idle:
            self._waits = lsn, now + _WARN_S
        elif now >= self._waits[1]:
            self._waits = lsn, now + _WARN_S
            _log.warning(
                "group %s waits since %.0f s for what %s tells after %s: %s",
                self._options.group,
                _WARN_S,
                self._spine.topic,
                show(lsn),
                self.assembler.explained,
            )

    def _add_topics(self) -> None:
        """Read the topics and partitions that came, too."""
        self._next_topics = runtime.monotonic() + _TOPICS_S
        asked_at = runtime.monotonic()
        found = self._reader.partitions(self._options.topics)
        if gone := {place.topic for place in self.assembler.lanes} - found.keys():
            _log.warning(
                "group %s: Kafka has %s no more", self._options.group, sorted(gone)
            )
            raise Moved  # where they end can never be told
        places = [
            place
            for topic, count in found.items()
            for number in range(count)
            if (place := Place(topic, number)) not in self.assembler.lanes
        ]
        for place in places:
            self._options.guard.expect(place)
        lanes = {place: self._lane(place, asked_at) for place in places}
        if lanes:
            self.assembler.lanes.update(lanes)
            self.added = True
            self._reader.read(
                {place: lane.next_offset for place, lane in lanes.items()}
            )
            _log.info(
                "group %s: reading %s partitions of %s topics",
                self._options.group,
                len(self.assembler.lanes),
                len(found),
            )

    def _lane(self, place: Place, asked_at: float) -> Lane:
        kept = self.row.places.get(place)
        offset = None if kept is None else kept.next_offset
        if kept is None and self._is_known(place.topic):
            offset = 0  # a partition that came: nothing of it was read
        guard = self._options.guard
        identity = None if kept is None else kept.topic_id
        self._ids[place.topic] = guard.check(place, offset, identity, asked_at)
        lane = Lane(place, reach=self._reach.get(place, 0))
        if kept is not None:
            lane.since, lane.source = kept.since, kept.source
            lane.next_offset = kept.next_offset
        else:
            lane.next_offset, _ = guard.bounds(place)
            if not self._is_known(place.topic):
                lane.since = self.assembler.position
        return lane

    def _is_known(self, topic: str) -> bool:
        return any(place.topic == topic for place in self.row.places)

    # --- what is due

    def next(self) -> Due | None:
        return self.assembler.next()

    def after(self, due: Due | None, *, with_places: bool) -> GroupRow:
        """Return the state once `due` was handled; None: how far was read."""
        whole = None if due is None else due.whole
        told = whole is not None and not whole.snapshot
        row = replace(
            self.row,
            lsn=whole.lsn if whole is not None and told else self.row.lsn,
            source=self._feed.source,
        )
        if not with_places and not self.added:
            return row
        places = {
            **row.places,
            **{
                place: PlaceRow(
                    lane.resume, lane.since, self._ids[place.topic], lane.source
                )
                for place, lane in self.assembler.lanes.items()
            },
        }
        return replace(
            row,
            places=places,
            next_offset=self.assembler.resume_told,
            topic_id=self._ids[self._spine.topic],
        )

    def done(self, due: Due | None, row: GroupRow) -> None:
        """Note that the state is `row` now, and `due` handled."""
        self.row, self.added = row, False
        if due is None:
            return
        self.assembler.done(due)
        whole = due.whole
        count = len(whole.ops)
        self._options.metrics(Measure.HANDLED, count, *self._spine)
        if whole.parked:
            _log.warning(
                "%r lacks %s records that were too large for their topics",
                whole,
                whole.parked,
            )

    def _count_skipped(self) -> None:
        skipped, self.assembler.skipped = self.assembler.skipped, 0
        self._options.metrics(Measure.SKIPPED, skipped, *self._spine)

    # --- what stops it

    def _look_for_gap(self, now: float) -> None:
        """Raise Incomplete for what stays so, whatever a replay still tells."""
        gap, assembler = self.assembler.gap(), self.assembler
        if gap is None:
            self._gap = None
        elif self._gap is None or self._gap[0] != gap:
            self._gap = gap, now + _PATIENCE_S, None
        elif self._gap[2] is None:
            if now >= self._gap[1]:
                self._gap = gap, now, assembler.doubt()
        elif assembler.is_final(self._gap[2]):
            raise self._incomplete(gap)

    def _incomplete(self, gap: Gap) -> Incomplete:
        count, last = self.assembler.gaps()
        repair = self._options.state.pass_by(max(last, gap.lsn))
        behind = "it" if count < 2 else f"the last of {count} such ones, {show(last)}"  # noqa: PLR2004 - more than this
        where = f"the transaction {gap.lsn} ({show(gap.lsn)})"
        what = f"{where} has records, but {self._spine.topic} does not tell it"
        if gap.place is not None:
            what = (
                f"{where} has {gap.wanted} records in {gap.place}, of which Kafka has"
                f" {gap.found}"
            )
        error = Incomplete(
            f"{what}: deleted or compacted before group {self._options.group} read"
            " them, or not all were sent",
            hint="load all its tables again (on the source: walstream backfill TABLE"
            f" --replace), and let the group continue behind {behind}; in the"
            f" application's database:\n{repair.sql}",
            repair=repair,
        ).on("", gap.lsn, 0)
        return error if gap.place is None else error.at(*gap.place)

    @property
    def is_at_other_source(self) -> bool:
        """Return whether all of a source was handled, and another one's comes next."""
        return self._feed.foreign is not None and self.assembler.is_drained

    def change(self, keep: Callable[[GroupRow, GroupRow], GroupRow]) -> None:
        """Go on with the other source; raise ForeignSource where it is not accepted.

        `keep` stores the new state.
        """
        foreign, kept = self._feed.foreign, self._feed.source
        if foreign is None or kept is None:
            return
        options = self._options
        if not accepts(options.accept_source, kept, foreign.source):
            raise ForeignSource(
                f"{self._spine} offset {foreign.offset} comes from source"
                f" {foreign.source}, and group {options.group} read {kept} so far:"
                " their positions cannot be compared",
                hint=f'continue with accept_source="{foreign.source}" if the target'
                " matches that source (backfill it again after a restore)",
            ).at(*self._spine, foreign.offset)
        after = replace(
            self.after(None, with_places=True),
            lsn=0,
            source=foreign.source,
            next_offset=foreign.offset,
        )
        self.row = keep(self.row, after)
        _log.warning(
            "group %s: continuing with source %s after %s",
            options.group,
            foreign.source,
            kept,
        )
        again = self.assembler.change_source()
        self._reader.seek({**again, self._spine: foreign.offset})
        self._feed.source, self._feed.foreign = foreign.source, None

    def lag(self) -> dict[Place, int]:
        """Return how many records of each partition are not handled yet, about."""
        found = {}
        for place, lane in [*self.assembler.lanes.items()]:
            if (end := lane.end) is not None:
                found[place] = max(0, end.offset - lane.resume)
        return found
