"""Places of records, and a group's offsets there: plain data."""

from dataclasses import dataclass
from typing import NamedTuple


class Partition(NamedTuple):
    topic: str
    number: int


class OffsetBounds(NamedTuple):
    first: int  # offset of the oldest record
    end: int  # offset that the next record will get


@dataclass(frozen=True, slots=True)
class GroupOffset:
    """Progress of a group in one partition."""

    stored: int | None  # the offset to go on from; None: it never stored one
    bounds: OffsetBounds

    @property
    def behind(self) -> int:
        """Approximate count of waiting records: markers of transactions count too."""
        first, end = self.bounds
        return max(0, end - max(first, self.stored or 0))

    @property
    def gap(self) -> bool:
        """Return whether what comes next is not there."""
        first, end = self.bounds
        return self.stored is not None and not first <= self.stored <= end
