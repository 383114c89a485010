"""Facts about a reader: what it waits for, for itself and in words for the log."""

import logging
from collections.abc import Iterable, Mapping
from typing import Final

from consumer.group.assigned_partition import Place
from consumer.whole.due import barrier
from consumer.whole.lane import Lane
from consumer.whole.open_transaction import OpenTransaction, found, short
from consumer.whole.pile import Pile
from walstream.lsn import NEVER, Lsn, show

_MOST: Final = 10  # facts
_log = logging.getLogger(__name__)


def explanation(
    head: OpenTransaction | None,
    pile: Pile | None,
    floor: Lsn,
    lanes: Iterable[Lane],
) -> str:
    """Return what comes next, and what of it is not there.

    `head` is the next transaction that is told, `pile` what was read of it, and `floor`
    the next one that is told or of which something was read.
    """
    if floor != NEVER and (head is None or floor < head.told.lsn):
        return f"records of {show(floor)} are there, which is not told"
    with_rows = [lane for lane in lanes if lane.rows]
    if head is None:
        barred = [str(lane.place) for lane in with_rows if barrier(lane)]
        facts = [f"{place} has a Truncate" for place in barred[:_MOST]]
        return ", ".join(["none is told", *facts])
    lsn = head.told.lsn
    missing = [
        f"{place} has {found(pile, place)} of {counts[place]} records"
        for counts in head.variants
        for place in short(pile, counts)
    ]
    behind = [
        f"{lane.place} is read to {lane.next_offset}"
        for lane in lanes
        if not lane.is_clear(lsn, head.serial)
    ]
    barred = [
        f"{lane.place} has a Truncate that is not in each of its partitions"
        for lane in with_rows
        if lane.rows[0].lsn < lsn
    ]
    return f"of {show(lsn)} " + ", ".join([*missing, *behind, *barred][:_MOST])


class ForeignWatch:
    """Watch on partitions that wait at another source's first record."""

    def __init__(self, group: str, transactions: str, every_s: float) -> None:
        """Log it each `every_s`; `transactions` is the transaction topic."""
        self._group = group
        self._transactions = transactions
        self._every_s = every_s
        self._due: float | None = None  # None: no partition waits

    def look(self, now: float, lanes: Iterable[Lane]) -> None:
        """Log which partitions wait, if any did for so long."""
        waiting = [lane for lane in lanes if lane.blocked_at is not None]
        if not waiting:
            self._due = None
        elif self._due is None:
            self._due = now + self._every_s
        elif now >= self._due:
            self._due = now + self._every_s
            first = waiting[0]
            _log.warning(
                "group %s: %s partitions wait at another source's first record, which"
                " %s does not come to: %s at offset %s, from source %s. If they are of"
                " other transactions, leave their topics out, and read them by a group"
                " with their own transaction topic",
                self._group,
                len(waiting),
                self._transactions,
                first.place,
                first.blocked_at,
                first.blocked_by,
            )


def needed(
    head: OpenTransaction | None, pile: Pile | None, lanes: Mapping[Place, Lane]
) -> set[Place]:
    """Return the partitions that what comes next waits for.

    All that waits while no transaction is told waits for the transaction topic.
    """
    with_rows = [lane for lane in lanes.values() if lane.rows]
    wanted = {place for lane in with_rows for place in barrier(lane)}
    if head is None:
        return wanted
    wanted |= head.lacks(pile)
    lsn, serial = head.told.lsn, head.serial
    return wanted | {at for at, one in lanes.items() if not one.is_clear(lsn, serial)}


def may_come_without_more(
    head: OpenTransaction, pile: Pile | None, lanes: Mapping[Place, Lane]
) -> bool:
    """Return whether the next one may become whole although no more is told.

    Where the partitions end that lack something, a replay may tell it again.
    """
    lacking = [lanes.get(place) for place in head.lacks(pile)]
    return not lacking or any(one is not None and one.is_behind for one in lacking)
