"""Puts transactions together again: whole, once, in the order of their commits. Pure.

What it is given are records in the order of their partitions, in any order between
these, repeated and gone back to as a replay does; and where partitions ended when that
was asked. The transaction topic tells which transactions there are, in order. Each
waits until every record that it counts was read. Backfilled rows stand between: behind
the transactions up to their LSN, and before those after it.
"""

import heapq
from collections.abc import Callable, Mapping
from typing import Final

from consumer.group.assigned_partition import Place
from consumer.op import Op
from consumer.state.position import SnapshotChunk, bygone, place_in_snapshot
from consumer.whole.due import Due, rows_due
from consumer.whole.explanation import explanation, may_come_without_more, needed
from consumer.whole.lane import End, Lane
from consumer.whole.open_transaction import Gap, OpenTransaction
from consumer.whole.pile import Pile, Piles, size
from consumer.whole.told import ResolvedMark, ToldTransaction
from consumer.whole.transaction import WholeTransaction
from walstream.lsn import NEVER, Lsn

_AHEAD: Final = 10_000  # transactions

IndexOf = Callable[[Place, SnapshotChunk], int]
"""The last row of a chunk that was handled."""


class TransactionAssembler:
    """The open transactions and rows of one reader.

    Numbers (`serial`) count what became known, so that an answer can be told to be
    younger than a question's reason.
    """

    def __init__(
        self,
        piles: Piles,
        reads: Callable[[str], bool],
        index_of: IndexOf,
        *,
        position: Lsn = 0,
    ) -> None:
        """Want the records of topics that `reads` tells, and none of others.

        `position` is the LSN of the last transaction that was handled.
        """
        self._piles = piles
        self._reads = reads
        self._index_of = index_of
        self.position = position
        self.spine = Lane(Place("", 0))  # the transaction topic
        self.lanes: dict[Place, Lane] = {}
        self.serial = 0
        self.asked = -1  # the serial of the last question for ends
        self.skipped = 0  # records that were handled before
        self._rows_bytes = 0
        self._chunks: dict[tuple[Place, SnapshotChunk], int] = {}  # as read
        self._awaited: dict[Lsn, OpenTransaction] = {}
        self._heads: list[Lsn] = []  # a heap: those that are told
        self._open: list[Lsn] = []  # a heap: those of which an op was read
        self._told_to = position  # each transaction up to here is told
        self._mark: ResolvedMark | None = None

    # --- what is read

    def tell(self, told: ToldTransaction, offset: int) -> None:
        """Take in a record of the transaction topic."""
        self.pass_told(offset + 1)
        self._told_to = max(self._told_to, told.lsn)
        if told.lsn <= self.position:
            self.skipped += 1
            return
        self.serial += 1
        awaited = self._awaited.get(told.lsn)
        if awaited is None:
            awaited = OpenTransaction(told, offset, self.serial, [])
            self._awaited[told.lsn] = awaited
            heapq.heappush(self._heads, told.lsn)
        reads = self._reads
        counts = {place: n for place, n in told.counts.items() if reads(place.topic)}
        if counts not in awaited.variants:
            awaited.variants.append(counts)

    def mark(self, mark: ResolvedMark, offset: int) -> None:
        """Take in a mark of the transaction topic."""
        self.pass_told(offset + 1)
        self._told_to = max(self._told_to, mark.resolved - 1)
        if self._mark is None or mark.resolved >= self._mark.resolved:
            self._mark = mark

    def pass_told(self, next_offset: int) -> None:
        self.spine.next_offset = next_offset

    def take(self, op: Op) -> bool:
        """Take in an op; False where its lane had its transaction handled without it.

        That is to stop the reader: the group reads the topic only since then.
        """
        record = op.record
        place = Place(record.topic, record.partition)
        lane = self.lanes[place]
        lane.next_offset = record.offset + 1
        if op.snapshot:
            self._take_row(lane, op)
            return True
        is_open = op.lsn > self.position
        lane.see(op, is_open=is_open)
        if is_open:
            if self._piles.get(op.lsn) is None:
                heapq.heappush(self._open, op.lsn)
            self._piles.add(place, op)
            return True
        self.skipped += 1
        return op.lsn > lane.since

    def _take_row(self, lane: Lane, op: Op) -> None:
        chunk, index = place_in_snapshot(op.lsn, op.seq_id)
        name = lane.place, chunk
        if name not in self._chunks:
            self._chunks[name] = self._index_of(*name)
        if index <= self._chunks[name] or op.lsn < bygone(lane.reach):
            lane.rows_shown = max(lane.rows_shown, op.lsn)
            self.skipped += 1
            return
        self._chunks[name] = index
        self.serial += 1
        lane.hold(op, self.serial)
        self._rows_bytes += size(op)

    def pass_over(self, place: Place, next_offset: int) -> None:
        """Note that nothing is left below an offset: of tombstones, or at an end."""
        lane = self.spine if place == self.spine.place else self.lanes[place]
        lane.next_offset = max(lane.next_offset, next_offset)

    def ask(self) -> int:
        """Return what the answer to a question for all ends is to be given with."""
        self.asked = self.serial
        return self.serial

    def answer(self, serial: int, ends: Mapping[Place, int]) -> None:
        """Take in where partitions ended, some time after `ask`."""
        for place, offset in ends.items():
            lane = self.spine if place == self.spine.place else self.lanes.get(place)
            if lane is not None:
                lane.end = End(offset, serial)

    # --- what is due

    def next(self) -> Due | None:
        """Return what is to be handled next; it stays so until `done`."""
        for lane in self.lanes.values():
            if not lane.rows:
                continue
            due = rows_due(lane, self.lanes, self._may_follow)
            if due is not None:
                return due
        head = self._head()
        if head is None or self._floor() < head.told.lsn:
            return None
        lsn = head.told.lsn
        if not head.is_whole(self._piles.get(lsn)):
            return None
        for lane in self.lanes.values():
            if not lane.is_clear(lsn, head.serial):
                return None
            if lane.rows and lane.rows[0].lsn < lsn:
                return None  # behind a Truncate that some partition lost
        return Due(self._whole(head.told))

    def done(self, due: Due) -> None:
        """Note that it was handled: it comes no more."""
        whole = due.whole
        if whole.snapshot:
            for lane in due.lanes:
                for _ in whole.ops:
                    self._rows_bytes -= size(lane.rows[0])
                    lane.release(1)
            return
        self.position = whole.lsn
        del self._awaited[whole.lsn]
        heapq.heappop(self._heads)
        pile = self._piles.get(whole.lsn)
        if pile is not None:
            for place in pile.counts:
                self.lanes[place].firsts.pop(whole.lsn, None)
            self._piles.pop(whole.lsn)

    def _whole(self, told: ToldTransaction) -> WholeTransaction:
        pile = self._piles.get(told.lsn)
        return WholeTransaction(
            told.lsn,
            () if pile is None else pile.ops(),
            end_lsn=told.end_lsn,
            xid=told.xid,
            commit_micros=told.commit_time,
            parked=told.parked,
        )

    def _head(self) -> OpenTransaction | None:
        return self._awaited[self._heads[0]] if self._heads else None

    @property
    def _head_pile(self) -> Pile | None:
        head = self._head()
        return None if head is None else self._piles.get(head.told.lsn)

    def _floor(self) -> Lsn:
        """Return the lowest transaction that is known and not handled."""
        while self._open and self._open[0] <= self.position:
            heapq.heappop(self._open)
        return min(
            self._heads[0] if self._heads else NEVER,
            self._open[0] if self._open else NEVER,
        )

    def _may_follow(self, lsn: Lsn, serial: int) -> bool:
        """Return whether each transaction up to `lsn` was handled."""
        if self._floor() <= lsn:
            return False
        return self._told_to >= lsn or self.spine.has_read(serial)

    # --- what it waits for

    @property
    def bytes(self) -> int:
        """About how much memory ops take that wait, or would if none were on disk."""
        return self._piles.kept + self._rows_bytes

    @property
    def wants_ends(self) -> bool:
        """Return whether something waits for an answer that was not asked for yet."""
        if self.asked >= self.serial:
            return False
        waiting = self._heads or self._open
        return bool(waiting) or any(lane.rows for lane in self.lanes.values())

    def doubt(self) -> int:
        """Return a serial for which ends are to be asked again."""
        self.serial += 1
        return self.serial

    @property
    def unknown(self) -> set[str]:
        """Name the topics of partitions that the next transaction has, and we lack."""
        head = self._head()
        if head is None:
            return set()
        return {
            place.topic
            for counts in head.variants
            for place in counts
            if place not in self.lanes
        }

    def needed(self) -> set[Place]:
        """Return the partitions that what comes next waits for."""
        return needed(self._head(), self._head_pile, self.lanes)

    @property
    def is_told_ahead(self) -> bool:
        """Return whether so many are told that the next may come without more."""
        head = self._head()
        if head is None or len(self._heads) < _AHEAD or self._floor() < head.told.lsn:
            return False
        return may_come_without_more(head, self._head_pile, self.lanes)

    def gap(self) -> Gap | None:
        """Return what seems to be incomplete for good.

        A replay that is under way may still tell other counts, and where keys moved, a
        partition may show a later op of the run before it: it is so once `is_final`.
        """
        floor, head = self._floor(), self._head()
        if floor == NEVER:
            return None
        if head is None or floor < head.told.lsn:
            return Gap(floor) if self._told_to > floor else None
        return self._gap_of(floor)

    def _gap_of(self, lsn: Lsn) -> Gap | None:
        return self._awaited[lsn].gap(
            self._piles.get(lsn), lambda place: self._is_past(place, lsn)
        )

    def gaps(self) -> tuple[int, Lsn]:
        """Count what seems incomplete of all that was read; tell the last of it."""
        untold = {
            lsn
            for lsn in self._piles.lsns
            if self.position < lsn < self._told_to and lsn not in self._awaited
        }
        told = {lsn for lsn in self._awaited if self._gap_of(lsn) is not None}
        return len(untold | told), max(untold | told, default=0)

    def is_final(self, serial: int) -> bool:
        """Return whether a gap that is still there, a while after `doubt`, will stay.

        So it is when the transaction topic, and the partitions in which something is
        missing, were read to ends that were asked for afterwards.
        """
        if not self.spine.has_read(serial):
            return False
        head = self._head()
        if head is None or self._floor() < head.told.lsn:
            return True
        lacking = head.lacks(self._piles.get(head.told.lsn)) & self.lanes.keys()
        return all(self.lanes[place].has_read(serial) for place in lacking)

    @property
    def explained(self) -> str:
        """Return what the next transaction waits for, for the log."""
        lanes = self.lanes.values()
        return explanation(self._head(), self._head_pile, self._floor(), lanes)

    def _is_past(self, place: Place, lsn: Lsn) -> bool:
        if (lane := self.lanes.get(place)) is None:  # its topic was deleted
            return self._mark is not None and self._mark.resolved > lsn
        return lane.is_past(lsn, self._mark)

    @property
    def resume_told(self) -> int:
        """The offset from which the transaction topic is to be read again."""
        offsets = (awaited.offset for awaited in self._awaited.values())
        return min(offsets, default=self.spine.next_offset)

    @property
    def is_drained(self) -> bool:
        """Return whether all that was told was handled."""
        return not self._heads

    @property
    def is_idle(self) -> bool:
        """Return whether nothing waits, neither told nor read."""
        return self._floor() == NEVER and not self._rows_bytes

    def change_source(self) -> dict[Place, int]:
        """Begin with another history; return where lanes are to be read again."""
        for lsn in self._piles.lsns:
            self._piles.pop(lsn)
        self._open.clear()
        self._chunks.clear()
        self._rows_bytes = 0
        self.position = self._told_to = 0
        self._mark = None
        offsets = {place: lane.begin_anew() for place, lane in self.lanes.items()}
        return {place: at for place, at in offsets.items() if at is not None}
