"""What goes wrong with relays, and with the topics that they read."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from consumer.group.assigned_partition import Place
from tests.simulation.faults import refuse_batches, slow_topics
from tests.simulation.kafka import SimTopic
from tests.simulation.relay_checker import named

if TYPE_CHECKING:
    from tests.simulation.relays import Relays

_OUTAGES: Final = (0.5, 12.0)
_CALLS: Final = (1, 5, 30, 200)
_FILLED: Final = 0.5  # share of topics that are soon what they were
_FORGOTTEN: Final = 0.5  # share of deleted topics whose offsets brokers delete, too


def leave(them: "Relays") -> None:
    relay = them.any
    if relay.stop is not None and sum(one.wanted for one in them.all) > 1:
        relay.wanted = False
        relay.stop.request()


def reload(them: "Relays") -> None:
    """Have one drain, and start with another configuration, as its parent does."""
    relay = them.any
    relay.memory = them.world.random.choice((1, 32, 64))
    if relay.stop is not None and not relay.process.dead:
        relay.stop.request()


def strike(them: "Relays", what: str) -> None:
    """Have it happen at a call of a port, whoever makes it."""
    them.strikes[what] = them.world.random.choice(_CALLS)


def expel(them: "Relays") -> None:
    """Have the brokers lose a member, which works on meanwhile."""
    if client := them.any.client:
        them.coordinator.expel(client)


def away(them: "Relays") -> None:
    until = them.world.now + them.world.random.choice(_OUTAGES)
    them.coordinator.away_until = them.cluster.away_until = until


def group_away(them: "Relays") -> None:
    until = them.world.now + them.world.random.choice(_OUTAGES)
    them.coordinator.away_until = until


def retain_less(them: "Relays") -> None:
    """Delete the oldest records of a partition, read or not."""
    log, draw = them.coordinator.log, them.world.random
    place = draw.choice([*log.visible])
    before, log.visible[place] = log.visible[place], len(log.records(place))
    least = max(log.low.get(place, 0), before // 2)
    log.low[place] = draw.randint(least, log.visible[place])


def recreate(them: "Relays") -> None:
    """Delete a topic; create it again with all that it had, or what was to come."""
    log, coordinator = them.coordinator.log, them.coordinator
    name = them.world.random.choice(them.topics)
    made, left = them.cluster.draw_number(), []
    whole = them.world.random.random() < _FILLED
    forgets = them.world.random.random() < _FORGOTTEN
    for part, records in enumerate(them.cluster.topics[name].partitions):
        place = Place(name, part)
        if whole:
            left.append(named(records, made))
        else:
            left.append(named(records[log.visible[place] :], made))
            log.visible[place] = 0
        log.low.pop(place, None)
        them.checker.recreated(place)
        # one that an operator set names no topic: Kafka deletes it with its topic
        if forgets or not coordinator.notes.get(place):
            coordinator.offsets.pop(place, None)
            coordinator.notes.pop(place, None)
    them.cluster.topics[name] = SimTopic(name, made, left)


def forget(them: "Relays") -> None:
    """Delete the offsets of a group that has no members."""
    if not them.coordinator.members:
        them.coordinator.offsets.clear()
        them.coordinator.notes.clear()


STEPS: Final[dict[str, Callable[["Relays"], None]]] = {
    "join": lambda them: them.join(),
    "leave": leave,
    "kill": lambda them: them.kill(them.any),
    "kill at a call": lambda them: strike(them, "kill"),
    "freeze": lambda them: them.freeze(them.any),
    "freeze at a call": lambda them: strike(them, "freeze"),
    "rebalance": lambda them: them.coordinator.assign(),
    "expel": expel,
    "Kafka away": away,
    "group away": group_away,
    "slow": lambda them: slow_topics(them.cluster),
    "refuse": lambda them: refuse_batches(them.cluster),
    "reload": reload,
    "retention": retain_less,
    "recreate": recreate,
    "forget offsets": forget,
}
_OFTEN: Final = ("join", "kill", "kill at a call", "freeze", "rebalance", "reload")
DRAWN: Final = (*STEPS, *_OFTEN)
