"""Ledger of a polled table's missing keys: no clock, no I/O.

A transaction may commit a lower key after a higher one was read. So the keys that were
missing from what was read are noted, and read again until they are seen or until a
timeout. How often follows their age: a gap that was just noted is due at each poll, one
of an hour every few minutes. None is forgotten but by a look that comes after its
timeout, and after the end of the transactions that were open when it was noted, where
the engine tells (its low-water mark has reached the gap's mark).
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from operator import itemgetter
from typing import Any, Final, NamedTuple, Self, cast

from walstream.sources.sql.intervals import Interval, count_keys, missing, outside

_PATIENCE: Final = 10  # a gap is due again after a tenth of its age
_SETTLED_S: Final = 60.0  # a key may have been drawn before its transaction is seen
_BLOCKS: Final = 1024  # more are joined, each with those noted about then
_LAST_SECOND: Final = 253_402_300_800  # the year 10000


class Forgotten(NamedTuple):
    """Keys that are no longer looked for."""

    keys: int
    gaps: int


@dataclass(slots=True, eq=False)
class _Block:
    """Gaps that were noted together."""

    since: float  # seconds before which they were drawn
    mark: int | None  # what the low-water mark has to reach; None: the engine has none
    gaps: int = 0  # how many are left
    looked: float | None = None  # when they were read again the last time

    def is_due(self, now: float) -> bool:
        if self.looked is None or now < self.looked:  # or the clock was set back
            return True
        return (now - self.looked) * _PATIENCE >= now - self.since

    def take(self, other: "_Block") -> None:
        """Be the block of its gaps, too: it was not noted later."""
        if self.mark is not None and other.mark is not None:
            self.mark = max(self.mark, other.mark)
        if self.looked is not None:
            self.looked = other.looked and min(self.looked, other.looked)


_Gap = tuple[int, int, _Block]


class GapLedger:
    """The missing keys of one table.

    A round is `due`, a read, `seen` of what came, and `looked`.
    """

    def __init__(self, timeout_s: float, most: int) -> None:
        """Keep up to `most` gaps for so long; a timeout of 0 keeps none."""
        self._timeout_s = timeout_s
        self._most = most
        self._gaps: list[_Gap] = []  # in the order of keys, none over another
        self._blocks: list[_Block] = []
        self._joined_at = _BLOCKS  # that many blocks are joined
        self._due: list[_Block] = []  # of the round that is under way
        self._last_look: list[_Block] = []  # those of it that go when it ends
        self._keys = 0

    def note(self, gaps: Iterable[Interval], since: float, mark: int | None) -> None:
        """Look for these from now on; `missing` makes them.

        They were drawn before `since`, on the clock of all that is called `now` here.
        Ask the engine for the mark after the read that missed them, so that it covers
        whoever was at work then. More than `most` are taken: read no new rows while it
        is `full`.
        """
        added = sorted(gaps)
        if not added or not self._timeout_s:
            return
        in_order = not self._gaps or added[0][0] > self._gaps[-1][1]
        if not in_order:
            self._cut(added)
        block = _Block(since, mark, len(added))
        self._gaps += [(low, high, block) for low, high in added]
        if not in_order:
            self._gaps.sort(key=itemgetter(0))
        self._keys += count_keys(added)
        self._blocks.append(block)
        if len(self._blocks) > self._joined_at and not self._due:
            self._join_blocks()

    def wants_look(self, now: float) -> bool:
        """Return whether a round would read anything: before the engine is asked."""
        return self.full or any(
            block.is_due(now) or now - block.since >= self._timeout_s
            for block in self._blocks
        )

    def due(self, now: float, low_water: int | None = None) -> list[Interval]:
        """Begin a round: what to read again now, in the order of keys.

        Ask the engine for its low-water mark before, not after: what a transaction left
        that ended by then is seen by the read that follows. None: it is not known, and
        the timeout alone counts.
        """
        self._last_look = self._ripe(now, low_water)
        due = {block for block in self._blocks if block.is_due(now)}
        due.update(self._last_look)
        self._due = list(due)
        if not due:
            return []
        return [(low, high) for low, high, block in self._gaps if block in due]

    def going(self) -> list[Interval]:
        """Return what goes when the round ends."""
        gone = set(self._last_look)
        return [(low, high) for low, high, block in self._gaps if block in gone]

    def count_from(self, key: int) -> int:
        """Count the gaps that end at a key, or above it."""
        return len(self._gaps) - bisect_left(self._gaps, key, key=itemgetter(1))

    def looked(self, now: float) -> Forgotten:
        """End the round: all that was due was read again.

        Forgets expired gaps, and, if the ledger is full, those that no transaction can
        still fill.
        """
        for block in self._due:
            block.looked = now
        gone = set(self._last_look)
        self._due, self._last_look = [], []
        if not gone:
            return Forgotten(0, 0)
        keys, gaps = self._keys, len(self._gaps)
        self._keep([gap for gap in self._gaps if gap[2] not in gone])
        return Forgotten(keys - self._keys, gaps - len(self._gaps))

    def seen(self, keys: Iterable[int]) -> None:
        """Take out what is delivered now; a key that is in no gap is skipped."""
        inside: dict[int, list[int]] = {}
        for key in sorted(set(keys)):
            index = self._index(key)
            if index is not None:
                inside.setdefault(index, []).append(key)
        if not inside:
            return
        gaps: list[_Gap] = []
        copied = 0
        for index, some in inside.items():
            low, high, block = self._gaps[index]
            left = missing(low - 1, high, some)
            gaps += self._gaps[copied:index]
            gaps += [(*gap, block) for gap in left]
            copied = index + 1
            block.gaps += len(left) - 1
            self._keys -= len(some)
        self._gaps = gaps + self._gaps[copied:]
        self._blocks = [block for block in self._blocks if block.gaps]

    def forget_above(self, key: int) -> None:
        """Forget the gaps of what will be read again after a rewind to this key."""
        if self._gaps and self._gaps[-1][1] > key:
            self._cut([(key + 1, self._gaps[-1][1])])

    def clear(self) -> None:
        """Forget all of them: the table's keys start again."""
        self._keep([])

    def __contains__(self, key: int) -> bool:
        return self._index(key) is not None

    def __len__(self) -> int:
        """Count the gaps, each of one key or more."""
        return len(self._gaps)

    @property
    def keys(self) -> int:
        return self._keys

    @property
    def oldest(self) -> float | None:
        """Since when the first of them is looked for."""
        return min((block.since for block in self._blocks), default=None)

    @property
    def full(self) -> bool:
        return len(self._gaps) >= self._most

    @property
    def half_full(self) -> bool:
        return len(self._gaps) * 2 >= self._most

    def document(self) -> list[object]:
        """Write it as JSON can hold it; `of` reads it."""
        written: dict[_Block, list[Any]] = {
            block: [block.since, block.mark] for block in self._blocks
        }
        ends: dict[_Block, int] = {}
        for low, high, block in self._gaps:
            end = ends.get(block)
            if end is None:
                written[block] += (low, high - low)
            elif low == high:
                written[block].append(low - end)
            else:  # below zero where a length follows
                written[block] += (end - low, high - low)
            ends[block] = high
        return list(written.values())

    @classmethod
    def of(cls, document: object, timeout_s: float, most: int) -> Self:
        """Read what `document` wrote; ValueError for anything else.

        All of it is due at once: nobody looked while this was down.
        """
        if not isinstance(document, list):
            raise ValueError("not a ledger of gaps")  # noqa: TRY004 - whatever is wrong
        ledger = cls(timeout_s, most)
        gaps: list[_Gap] = []
        for written in document:
            gaps += _read_block(written)
        gaps.sort(key=itemgetter(0))
        for (_, high, _), (low, _, _) in pairwise(gaps):
            if low <= high:
                raise ValueError("a ledger of gaps that overlap")
        if timeout_s:
            ledger._keep(gaps)
        return ledger

    def _index(self, key: int) -> int | None:
        index = bisect_right(self._gaps, (key, inf)) - 1
        return index if index >= 0 and self._gaps[index][1] >= key else None

    def _keep(self, gaps: list[_Gap]) -> None:
        """Keep these instead."""
        self._gaps = gaps
        self._keys = count_keys(gaps)
        counts = Counter(block for _, _, block in gaps)
        for block, count in counts.items():
            block.gaps = count
        self._blocks = list(counts)

    def _cut(self, cuts: Sequence[Interval]) -> None:
        """Take out what lies in these, which are in order."""
        self._keep(
            [
                (low, high, block)
                for first, last, block in self._gaps
                for low, high in outside((first, last), cuts)
            ]
        )

    def _ripe(self, now: float, low_water: int | None) -> list[_Block]:
        """Choose those that may go after one more look."""
        ripe, settled = [], []
        for block in self._blocks:
            age = now - block.since
            known = block.mark is not None and low_water is not None
            ended = known and low_water >= block.mark  # type: ignore[operator]
            if age >= self._timeout_s and (ended or not known):
                ripe.append(block)
            elif ended and age >= _SETTLED_S:
                settled.append(block)
        if self.full:
            left = len(self._gaps) - sum(block.gaps for block in ripe)
            for block in sorted(settled, key=lambda block: block.since):
                if left * 2 <= self._most:
                    break
                ripe.append(block)
                left -= block.gaps
        return ripe

    def _join_blocks(self) -> None:
        """Let those noted at about one time be one, noted when the last of them was."""
        heirs: dict[_Block, _Block] = {}
        latest: dict[bool, _Block] = {}  # by whether they have a mark
        for block in sorted(self._blocks, key=lambda block: block.since, reverse=True):
            has_mark = block.mark is not None
            heir = latest.get(has_mark)
            if heir is None or heir.since - block.since > self._timeout_s / _BLOCKS:
                heir = latest[has_mark] = block
            else:
                heir.take(block)
            heirs[block] = heir
        self._keep([(low, high, heirs[block]) for low, high, block in self._gaps])
        self._joined_at = max(_BLOCKS, 2 * len(self._blocks))


def _read_block(written: object) -> Iterator[_Gap]:
    match written:
        case [int() | float() as since, None | int() as mark, *numbers]:
            pass
        case _:
            raise ValueError("no block of gaps")
    if bool in {type(since), type(mark)} or not 0 <= since < _LAST_SECOND:
        raise ValueError("a block of gaps of another time")
    if not {int}.issuperset(map(type, numbers)):
        raise ValueError("a block of gaps with other numbers")
    block = _Block(float(since), mark)
    rest = iter(cast("list[int]", numbers))
    try:
        low, length = next(rest), next(rest)
        while True:
            if length < 0:
                raise ValueError("a gap that ends before it begins")
            high = low + length
            yield low, high, block
            distance = next(rest, None)
            if distance is None:
                return
            low = high + abs(distance)
            length = next(rest) if distance < 0 else 0
    except StopIteration:
        raise ValueError("a block of gaps that breaks off") from None
