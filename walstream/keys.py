"""Which columns decide a table's keys, and from which LSN on: pure.

The row key is what the Relation message marks (the replica identity), or under REPLICA
IDENTITY FULL, where it marks every column, the primary key from the catalog. An update
that changes the row key or a sink's partition key is split in two and takes two
numbers, so these columns must be the same in every replay: they are kept with the
position, and a change counts only from an LSN that no op has passed.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from walstream.lsn import Lsn


@dataclass(frozen=True, slots=True)
class KeySet:
    """Columns by name. `primary_key` matters only under REPLICA IDENTITY FULL."""

    from_lsn: Lsn  # transactions with a commit LSN from here on
    primary_key: tuple[str, ...] = ()
    partition_key: tuple[str, ...] = ()  # of all sinks together, sorted

    def same_columns(self, other: "KeySet") -> bool:
        return (self.primary_key, self.partition_key) == (
            other.primary_key,
            other.partition_key,
        )


class KeyHistory:
    """The key sets of one table, oldest first; never empty."""

    def __init__(self, sets: Sequence[KeySet]) -> None:
        self._sets = list(sets) or [KeySet(0)]

    def at(self, lsn: Lsn) -> KeySet:
        """Find the set under which a transaction of commit LSN `lsn` is read."""
        for key_set in reversed(self._sets):
            if key_set.from_lsn <= lsn:
                return key_set
        return self._sets[0]

    def change(self, now: KeySet) -> bool:
        """Let `now` count from its LSN on; tell whether that is a change."""
        if self._sets[-1].same_columns(now):
            return False
        self._sets.append(now)
        return True

    @property
    def known_from(self) -> Lsn:
        """From which LSN on `at` is right: what counted below may be forgotten."""
        return self._sets[0].from_lsn

    def forget_below(self, oldest: Lsn) -> None:
        """Drop sets that no replay can need: none begins below `oldest`."""
        current = self.at(oldest)
        self._sets = self._sets[self._sets.index(current) :]

    def boundaries(self) -> Iterable[Lsn]:
        """List the LSNs at which the set changes."""
        return (key_set.from_lsn for key_set in self._sets[1:])

    def to_json(self) -> list[dict[str, Any]]:
        return [asdict(key_set) for key_set in self._sets]

    @classmethod
    def from_json(cls, sets: list[dict[str, Any]]) -> "KeyHistory":
        return cls(
            [
                KeySet(
                    from_lsn=fields["from_lsn"],
                    primary_key=tuple(fields["primary_key"]),
                    partition_key=tuple(fields["partition_key"]),
                )
                for fields in sets
            ]
        )
