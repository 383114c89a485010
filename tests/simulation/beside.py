"""The worlds of their own that a schedule has beside the one of its source."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from tests.simulation import instances
from tests.simulation.database import AppRow
from tests.simulation.installation import parts
from tests.simulation.kafka import SimCluster
from tests.simulation.members import Members
from tests.simulation.polling import Polling
from tests.simulation.relays import Relays

if TYPE_CHECKING:
    from tests.simulation.schedule import Schedule


def _poll(schedule: "Schedule") -> int:
    polling = Polling(schedule)
    parts.disk = polling.disk
    return polling.run()


BESIDE: Final[dict[str, Callable[["Schedule"], int]]] = {
    "polls": _poll,
    "instances": instances.run,
}


def read(
    schedule: "Schedule",
    cluster: SimCluster,
    rows: Mapping[str, Mapping[str, AppRow]],
) -> list[int]:
    """Have others read what a run left in Kafka; give their digests."""
    digests = []
    if schedule.members:
        digests.append(Members(schedule, cluster, rows).run())
    if schedule.relays:
        digests.append(Relays(schedule, cluster).run())
    return digests


def run(schedule: "Schedule") -> list[int]:
    """Run those that it has anything for; give their digests."""
    return [
        world(schedule) for name, world in BESIDE.items() if getattr(schedule, name)
    ]
