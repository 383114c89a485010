"""Records that Kafka deletes under a consumer group, read or not.

Whoever finds that records were deleted before they were read has to stop, and to name
the partition. What a group had not begun to read is nothing that it misses.
"""

from typing import Final

from consumer.errors import TopicReplaced
from consumer.group.assigned_partition import Place
from tests.simulation.group import Log
from tests.simulation.target import SimTarget

STEP: Final = "retention"


class Retention:
    """What was deleted from the partitions of a group, and who met it."""

    def __init__(self, log: Log, target: SimTarget, group: str) -> None:
        self._log = log
        self._target = target
        self._group = group
        self._owed: set[Place] = set()  # unread records may be deleted there
        self.unbegun: dict[Place, int] = {}  # below it nothing was owed to the group
        self.stops = 0

    def delete(self) -> None:
        """Delete the oldest records of a partition; one at least is still to come.

        Without that one nobody could know, before the group's next start. What is old
        enough is in the topic's other partitions, too.
        """
        log, draw = self._log, self._log.world.random
        place = draw.choice([*log.visible])
        for one in log.visible:
            if one.topic == place.topic:
                log.visible[one] = len(log.records(one))
        low = log.low.get(place, 0) + 1
        most = min(log.visible[place], len(log.records(place)) - 1)
        if most < low:
            return
        low = log.low[place] = draw.randint(low, most)
        state = self._target.relation("state").committed()
        row = state.get((self._group, *place))
        if row is None or row[3] is None:
            self.unbegun[place] = low
        if row is None or (row[3] or 0) < low:
            self._owed.add(place)

    def meet(self, error: Exception) -> bool:
        """Return whether a member had to stop so."""
        place = None
        if isinstance(error, TopicReplaced):
            place = Place(error.topic, error.partition)
        self.stops += place in self._owed
        return place in self._owed

    @property
    def gone(self) -> bool:
        """Return whether the target may lack something for good."""
        return bool(self.stops or self.unbegun)
