"""What `walstream run` was told beside the configuration."""

from dataclasses import dataclass
from typing import Final

ALL_DONE: Final = 64
"""What a worker ends with that has nothing left to do; 0 is a drain, by whomever."""


@dataclass(frozen=True, slots=True)
class Options:
    """An operator's consent to what would stop a source, for this run."""

    adopt_slot: bool = False
    take_over: bool = False
    accept_partitions: bool = False
    end_backfilled: bool = False  # bring a backfill to its end, and stream no further
