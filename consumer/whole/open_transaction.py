"""A transaction that was told, and what of it is still to come."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from consumer.group.assigned_partition import Place
from consumer.whole.pile import Pile
from consumer.whole.told import ToldTransaction
from walstream.lsn import Lsn

Counts = Mapping[Place, int]


class Gap(NamedTuple):
    """A transaction whose records seem to be gone: from where, and how many are there.

    Without a place it is one that the transaction topic does not tell.
    """

    lsn: Lsn
    place: Place | None = None
    wanted: int = 0
    found: int = 0


@dataclass(slots=True)
class OpenTransaction:
    """A transaction; a replay may tell it again, with other counts."""

    told: ToldTransaction
    offset: int  # of its first record
    serial: int
    variants: list[Counts]

    def is_whole(self, pile: Pile | None) -> bool:
        """Return whether all was read that some record of it counts."""
        return any(not short(pile, counts) for counts in self.variants)

    def lacks(self, pile: Pile | None) -> set[Place]:
        """Return where records are still to come, by any record of it."""
        return {place for counts in self.variants for place in short(pile, counts)}

    def gap(self, pile: Pile | None, is_past: Callable[[Place], bool]) -> Gap | None:
        """Return what is missing for good, whichever record of it counts.

        `is_past` tells of which partitions nothing is to come.
        """
        gap = None
        for counts in self.variants:
            missing = short(pile, counts)
            past = [place for place in missing if is_past(place)]
            # one that has as many as it is to have may still have the wrong ones
            few = [place for place in past if found(pile, place) < counts[place]]
            if not past or (not few and len(past) < len(missing)):
                return None
            place = (few or past)[0]
            gap = Gap(self.told.lsn, place, counts[place], found(pile, place))
        return gap


def found(pile: Pile | None, place: Place) -> int:
    """Return how many ops of a transaction a partition had."""
    return 0 if pile is None else pile.counts[place]


def short(pile: Pile | None, counts: Counts) -> list[Place]:
    """Return the partitions of which records are still to come.

    Where keys moved between two runs of the source, a partition may have enough ops of
    the wrong run: so the ops of all have to be as many as all counts, too.
    """
    if pile is None:
        return [*counts]
    few = [place for place, count in counts.items() if pile.counts[place] < count]
    if not few and pile.records < sum(counts.values()):
        return [*counts]
    return few
