"""One partition as far as it was read: what of it waits, and how far it shows."""

from collections import deque
from dataclasses import dataclass, field

from consumer.group.assigned_partition import Place
from consumer.op import Op
from consumer.whole.told import ResolvedMark
from walstream.lsn import NEVER, Lsn


@dataclass(slots=True)
class End:
    """End of a partition, and what was known when it was asked for."""

    offset: int
    serial: int


@dataclass(slots=True)
class Lane:
    """A partition of a table's topic. Offsets are those of Kafka.

    In a partition ops come in the order of the source. A replay goes some steps back,
    and then on without a gap. A backfilled row comes after each op of its table up to
    its LSN, and before every later one.
    """

    place: Place
    next_offset: int = 0  # behind what was read
    since: Lsn = 0  # earlier ops were handled without this topic
    source: str | None = None  # that its records name; None: none did yet
    blocked_at: int | None = None  # the offset of another source's first record
    blocked_by: str | None = None  # that source
    end: End | None = None
    shown: Lsn = 0  # the highest LSN of a streamed op
    rows_shown: Lsn = 0  # and of a backfilled row
    reach: Lsn = 0  # the newest snapshot, also of before the start
    rows: deque[Op] = field(default_factory=deque)  # backfilled, not handled yet
    serials: deque[int] = field(default_factory=deque)  # when each was read
    firsts: dict[Lsn, int] = field(
        default_factory=dict
    )  # offsets, of open transactions

    def see(self, op: Op, *, is_open: bool) -> None:
        """Note an op of the stream."""
        self.shown = max(self.shown, op.lsn)
        if is_open:
            self.firsts.setdefault(op.lsn, op.record.offset)

    def hold(self, op: Op, serial: int) -> None:
        """Keep a backfilled row, or the Truncate ahead of such rows."""
        self.rows_shown = max(self.rows_shown, op.lsn)
        self.reach = max(self.reach, op.lsn)
        self.rows.append(op)
        self.serials.append(serial)

    def release(self, count: int) -> None:
        for _ in range(count):
            self.rows.popleft()
            self.serials.popleft()

    def block(self, offset: int, source: str) -> None:
        self.blocked_at, self.blocked_by = offset, source
        self.shown = NEVER

    def unblock(self) -> int | None:
        """Go on; return where it is to be read again."""
        at, self.blocked_at = self.blocked_at, None
        self.shown = 0
        if at is not None:
            self.next_offset = at
        return at

    def begin_anew(self) -> int | None:
        """Go on with another source: nothing of the former one is comparable."""
        self.shown = self.rows_shown = self.reach = self.since = 0
        self.rows.clear()
        self.serials.clear()
        self.firsts.clear()
        return self.unblock()

    def has_read(self, serial: int) -> bool:
        """Return whether all of an end was read that was asked for after `serial`."""
        end = self.end
        return (
            end is not None and end.serial >= serial and self.next_offset >= end.offset
        )

    @property
    def is_behind(self) -> bool:
        """Return whether it was not read to where it ended when last asked for."""
        return self.end is None or self.next_offset < self.end.offset

    def is_clear(self, lsn: Lsn, serial: int) -> bool:
        """Return whether nothing that comes here may stand before a transaction."""
        return max(self.shown, self.rows_shown) >= lsn or self.has_read(serial)

    def is_past(self, lsn: Lsn, mark: ResolvedMark | None) -> bool:
        """Return whether no op of a transaction is to come that was not read."""
        if self.shown > lsn:
            return True
        if mark is None or mark.resolved <= lsn:
            return False
        end = mark.ends.get(self.place)
        return end is not None and self.next_offset >= end

    @property
    def resume(self) -> int:
        """The offset from which everything that was not handled is read again."""
        kept = [*self.firsts.values()]
        if self.rows:
            kept.append(self.rows[0].record.offset)
        return min(kept, default=self.next_offset)
