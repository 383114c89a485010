"""What goes wrong: each fault changes the world of a run."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tests.simulation.checker import phase_of
from tests.simulation.ddl import publish_less
from tests.simulation.installation import PARTITIONS
from tests.simulation.kafka import SimCluster
from tests.simulation.world import void

if TYPE_CHECKING:
    from tests.simulation.run import Run

STATE: Final = "/nowhere/state/app"
_SLOT: Final = "walstream"


def stop(run: "Run") -> None:
    """Ask it to stop, as systemd does; it is started again."""
    if run.stop is not None:
        run.stop.request()


def away(run: "Run") -> None:
    run.cluster.away_until = run.world.now + run.world.random.choice((0.2, 8.0))


def slow(run: "Run") -> None:
    topics = sorted(run.cluster.topics)
    if topics:
        topic = run.world.random.choice(topics)
        part = run.world.random.randrange(len(run.cluster.topics[topic].partitions))
        run.cluster.slow[topic, part] = run.world.now + 5.0


def slow_sink(run: "Run") -> None:
    """Have one sink lag behind the other, for longer than it may."""
    draw = run.world.random
    sink, until = draw.choice(sorted(PARTITIONS)), draw.choice((6.0, 15.0))
    for name, topic in run.cluster.topics.items():
        for part in range(len(topic.partitions)):
            if name.startswith(sink):
                run.cluster.slow[name, part] = run.world.now + until


def deny(run: "Run") -> None:
    """Take the rights to one sink's topics away for a while."""
    run.cluster.denied_until = run.world.now + 4.0


def narrow(run: "Run") -> None:
    """Have a topic take small records alone, until an operator notices."""
    for topic in run.world.random.sample(sorted(run.cluster.topics), 1):
        run.cluster.topics[topic].limit = 130


def recreate(run: "Run") -> None:
    """Delete a topic and create it again: who reads it has lost what was there."""
    run.whole = False
    run.cluster.recreate(run.world.random.choice(sorted(run.cluster.topics)))


def refuse(run: "Run") -> None:
    """Have a batch of each producer given up, after a while in which more came."""
    run.cluster.away_until = max(run.cluster.away_until, run.world.now + 0.3)
    for _ in range(3):
        run.server.commit(run.world.random.getrandbits(32))
    for producer in run.cluster.producers:
        producer.failing = 1


def refuse_first(run: "Run") -> None:
    """Have each producer's first batch in a partition refused once, and a new one."""
    run.cluster.refusing_until = run.world.now + 20.0
    for _ in range(6):
        run.server.commit(run.world.random.getrandbits(32))
    run.server.cut()


def lose_leaders(cluster: SimCluster) -> None:
    """Have partitions without a leader, as while their only broker stands still."""
    draw, now = cluster.world.random, cluster.world.now
    topics = sorted(cluster.topics)
    if draw.random() < 0.5:
        topics = draw.sample(topics, min(len(topics), 1))
    until = now + draw.choice((0.3, 3.0, 12.0))
    for name in topics:
        for part in range(len(cluster.topics[name].partitions)):
            cluster.transactions.leaderless[name, part] = until
            cluster.slow[name, part] = until


def slow_topics(cluster: SimCluster) -> None:
    """Have a partition of each topic answer late."""
    draw, now = cluster.world.random, cluster.world.now
    for name, topic in sorted(cluster.topics.items()):
        part = draw.randrange(len(topic.partitions))
        cluster.slow[name, part] = now + draw.choice((1.0, 20.0))


def refuse_batches(cluster: SimCluster) -> None:
    """Have the next batch of each producer given up."""
    for producer in cluster.producers:
        producer.failing = 1


def take_over(cluster: SimCluster) -> None:
    """Have another producer take an id over, as a copy of the instance does."""
    cluster.transactions.take_over()


def fence(run: "Run") -> None:
    for producer in run.cluster.producers:
        producer.fail()


def full(run: "Run") -> None:
    run.disk.full_until = run.world.now + 3.0


def fail_write(run: "Run") -> None:
    run.disk.failing = 2


def hold(run: "Run") -> None:
    """Have commits wait for a standby: they are streamed before they are seen."""
    run.server.held_until = run.world.now + 2.0


def set_clock(run: "Run") -> None:
    by_s = run.world.random.choice((-3600.0, 3600.0, 20.0))
    run.world.wall += by_s
    if by_s < 0:
        # a record has the time of its sending where its commit is of the future: it
        # is not known again by its commit time
        run.checker.once = False


def kill_now(run: "Run") -> None:
    run.kills.insert(0, 0)


def drop_slot(run: "Run") -> None:
    run.server.cut()
    run.server.slots.pop(_SLOT, None)


def advance_slot(run: "Run") -> None:
    for slot in run.server.slots.values():
        slot.confirmed = slot.on_disk = run.server.wal_end


def yesterday(run: "Run") -> None:
    """Kill it, and bring the state folder of before back."""
    if not run.process.dead:
        run.kills.insert(0, 0)
    run.world.at(0.01, lambda: _bring_back(run))


def promote(run: "Run") -> None:
    run.server.promote()


def _bring_back(run: "Run") -> None:
    if run.process.dead:
        run.disk.folders[STATE] = run.yesterday
        run.checker.restored(STATE, run.yesterday)
        for sink in PARTITIONS:  # as the log says, of sinks that were in the stream
            if not phase_of(run.yesterday, sink):
                run.server.slots.pop(f"{_SLOT}_{sink}", None)
                run.disk.folders.pop(f"{STATE}/away/{sink}", None)
                run.checker.discarded(f"{STATE}/away/{sink}")
        for _, name in run.schedule.reads:  # what was asked for is forgotten
            run.ask(name)
    else:
        run.world.at(0.005, lambda: _bring_back(run))


Fault = Callable[["Run"], None]
FAULTS: Final[dict[str, Fault]] = {
    "cut": lambda run: run.server.cut(),
    "silence": lambda run: run.server.fall_silent(),
    "server crash": lambda run: run.server.crash(),
    "checkpoint": lambda run: run.server.checkpoint(),
    "grow": lambda run: run.server.grow(),
    "begin": lambda run: void(run.server.begin()),
    "standby": hold,
    "message": lambda run: run.server.say(),
    "Kafka away": away,
    "slow partition": slow,
    "slow sink": slow_sink,
    "deny": deny,
    "narrow topic": narrow,
    "refuse": refuse,
    "fence": fence,
    "full disk": full,
    "failed write": fail_write,
    "clock": set_clock,
    "kill": kill_now,
    "stop": stop,
}
EDITS: Final[dict[str, Fault]] = {
    "drop slot": drop_slot,
    "advance slot": advance_slot,
    "yesterday": yesterday,
    "failover": promote,
    "recreate topic": recreate,
    "publish less": publish_less,
}
TRANSACTION_FAULTS: Final[dict[str, Callable[[SimCluster], None]]] = {
    "leaderless": lose_leaders,
    "take over": take_over,
}
# drawn apart: seeds of before mean what they meant
APART: Final[dict[str, Fault]] = {"refuse first": refuse_first}
