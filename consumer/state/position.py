"""Position of a partition: the ops that took effect already. Pure.

A streamed op took effect when its `(lsn, seq_id)` is at most the position. A
snapshot row is not part of that order: its number is a chunk and an index in it, and
chunks mix freely, so each chunk has a position of its own. It is kept until the
partition is far beyond the snapshot: rows of it stand before all that is newer.
"""

from typing import Final, NamedTuple

_INDEX_BITS: Final = 32
# of WAL: what commits while a synchronous standby does not answer is streamed before a
# snapshot sees it, so a place is not exact to the byte
_FAR: Final = 1 << 30


class AppliedPosition(NamedTuple):
    """The last op that took effect; so did each with a smaller `(lsn, seq_id)`."""

    lsn: int
    seq_id: int


NOTHING: Final = AppliedPosition(0, 0)  # no commit record has this LSN


class SnapshotChunk(NamedTuple):
    """A part of a snapshot; every attempt reads it in the same order."""

    lsn: int
    number: int  # over all tables of the snapshot, from 1


def bygone(reach: int) -> int:
    """Return the LSN below which no snapshot row takes effect."""
    return reach - _FAR


def place_in_snapshot(lsn: int, seq_id: int) -> tuple[SnapshotChunk, int]:
    """Take a snapshot row's number apart: its chunk, and its index in it."""
    return (
        SnapshotChunk(lsn, seq_id >> _INDEX_BITS),
        seq_id & ((1 << _INDEX_BITS) - 1),
    )
