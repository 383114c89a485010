"""The unit that is handled next: a transaction, or backfilled rows."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from consumer.group.assigned_partition import Place
from consumer.op import Op
from consumer.state.position import SnapshotChunk, place_in_snapshot
from consumer.whole.lane import Lane
from consumer.whole.transaction import WholeTransaction
from walstream.lsn import Lsn
from walstream.op import Kind

_ROWS: Final = 1000  # at once

MayFollow = Callable[[Lsn, int], bool]
"""Whether each transaction up to an LSN was handled, for a row of this serial."""


@dataclass(frozen=True, slots=True)
class Due:
    """The next unit: one transaction of the application."""

    whole: WholeTransaction
    lanes: tuple[Lane, ...] = ()  # whose first rows these are, or the Truncate is
    chunks: Mapping[Place, Mapping[SnapshotChunk, int]] = field(default_factory=dict)


def rows_due(
    lane: Lane, lanes: Mapping[Place, Lane], may_follow: MayFollow
) -> Due | None:
    """Return a lane's first rows, if they come next, or a Truncate ahead of rows."""
    first = lane.rows[0]
    if not may_follow(first.lsn, lane.serials[0]):
        return None
    if first.kind is not Kind.TRUNCATE:
        return _due([lane], [*_alike(lane, may_follow)])
    barred = [lanes.get(place) for place in barrier(lane)]
    met = [one for one in barred if one is not None and _is_next(one, first)]
    return _due(met, [first]) if len(met) == len(barred) else None


def barrier(lane: Lane) -> list[Place]:
    """Return the partitions that have a Truncate which is a lane's first row."""
    first = lane.rows[0]
    if first.kind is not Kind.TRUNCATE:
        return []
    numbers = range(first.partitions)
    return [Place(lane.place.topic, number) for number in numbers] or [lane.place]


def _alike(lane: Lane, may_follow: MayFollow) -> Iterator[Op]:
    """Yield the first rows, as far as they are of one snapshot."""
    first = lane.rows[0]
    for count, (op, serial) in enumerate(zip(lane.rows, lane.serials, strict=True)):
        is_other = op.lsn != first.lsn or op.kind is Kind.TRUNCATE
        if is_other or count == _ROWS or not may_follow(op.lsn, serial):
            return
        yield op


def _due(lanes: list[Lane], ops: list[Op]) -> Due:
    chunks: dict[SnapshotChunk, int] = {}
    for op in ops:
        chunk, index = place_in_snapshot(op.lsn, op.seq_id)
        chunks[chunk] = index
    whole = WholeTransaction(ops[0].lsn, tuple(ops), snapshot=True)
    return Due(whole, tuple(lanes), {lane.place: chunks for lane in lanes})


def _is_next(lane: Lane, op: Op) -> bool:
    if not lane.rows:
        return False
    first = lane.rows[0]
    return (first.lsn, first.seq_id, first.kind) == (op.lsn, op.seq_id, op.kind)
