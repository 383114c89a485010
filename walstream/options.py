"""What `walstream run` was told beside the configuration."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """An operator's consent to what would stop a source, for this run."""

    adopt_slot: bool = False
    take_over: bool = False
    accept_partitions: bool = False
    end_backfilled: bool = False  # bring a backfill to its end, and stream no further
