"""What goes wrong with the instances of a source, and around them."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation.faults import refuse_batches, slow_topics

if TYPE_CHECKING:
    from tests.simulation.instances import Instances

STEPS: Final = (
    *("commit",) * 12,
    *("kill", "kill at a call", "freeze", "freeze behind Kafka", "freeze"),
    *("standby", "standby", "copy", "bare", "twin", "take over"),
    *("cut", "silence", "server crash", "checkpoint", "Kafka away", "slow", "refuse"),
)


def away(them: "Instances") -> None:
    until = them.world.now + them.world.random.choice((0.2, 8.0))
    them.cluster.away_until = until


FAULTS: Final[dict[str, Callable[["Instances"], None]]] = {
    "commit": lambda them: them.commit(),
    "kill": lambda them: them.kill(),
    "kill at a call": lambda them: them.kill_at_a_call(),
    "freeze": lambda them: them.freeze(),
    "freeze behind Kafka": lambda them: them.freeze(behind=True),
    "cut": lambda them: them.server.cut(),
    "silence": lambda them: them.server.fall_silent(),
    "server crash": lambda them: them.server.crash(),
    "checkpoint": lambda them: them.server.checkpoint(),
    "Kafka away": away,
    "slow": lambda them: slow_topics(them.cluster),
    "refuse": lambda them: refuse_batches(them.cluster),
}
