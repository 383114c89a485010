"""What a chained source knows of a sink, whoever is connected to it: pure."""

from collections import Counter

from walstream.kafka.topic_limits import DEFAULT_LIMIT
from walstream.sources.kafka.lease import Leash


class Lasting:
    """The sizes that a sink's topics take, and what it dropped."""

    def __init__(self, leash: Leash, dropped: int = 0) -> None:
        """Go on from what earlier processes dropped."""
        self.leash = leash  # the same for all memberships
        # the smallest and the largest max.message.bytes that were met
        self.limits = (DEFAULT_LIMIT, DEFAULT_LIMIT)
        self.dropped = dropped
        self._by_table: Counter[str] = Counter()  # dropped by this process

    def see(self, limit: int) -> None:
        """Take in what one more topic takes."""
        smallest, largest = self.limits
        self.limits = min(smallest, limit), max(largest, limit)

    def drop(self, table: str) -> bool:
        """Count a record that has no topic; tell whether its table is new."""
        self.dropped += 1
        self._by_table[table] += 1
        return self._by_table[table] == 1

    @property
    def tables(self) -> dict[str, dict[str, int]]:
        """Give what this process dropped, by table; from any thread."""
        return {name: {"dropped": n} for name, n in dict(self._by_table).items()}
