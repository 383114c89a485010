"""The worlds of their own that a schedule has beside the one of its source."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation import instances
from tests.simulation.installation import parts
from tests.simulation.polling import Polling

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


def run(schedule: "Schedule") -> list[int]:
    """Run those that it has anything for; give their digests."""
    return [
        world(schedule) for name, world in BESIDE.items() if getattr(schedule, name)
    ]
