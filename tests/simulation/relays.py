"""Relays of one group: records go on byte for byte, and offsets follow them.

They read what a run left in Kafka, as members of a group with a state folder each, and
write it to two sinks. Members die, freeze and lose their partitions; records are
deleted before they are read, topics are created again, and the group's offsets are
forgotten. An operator does what a relay that stops says.
"""

import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from consumer.group.assigned_partition import Place
from tests.simulation.disk import SimDisk
from tests.simulation.faults import take_over
from tests.simulation.group import Coordinator, Log, SimConsumer
from tests.simulation.host import process_in, stop_of
from tests.simulation.installation import parts
from tests.simulation.kafka import SimCluster, SimTopic
from tests.simulation.kafka_transactions import POSITIONS
from tests.simulation.relay_checker import UPSTREAM, ChainChecker, named, upstream_of
from tests.simulation.relay_ports import (
    RelayProducer,
    TransactionalRelayProducer,
    taken_over,
)
from tests.simulation.relay_steps import STEPS
from tests.simulation.world import Killed, Process, Violation, World
from walstream.config import Config, load
from walstream.config.run_options import Options
from walstream.errors import HistoryError, WalstreamError
from walstream.pipeline.shutdown import Stop
from walstream.service.worker import Worker

if TYPE_CHECKING:
    from tests.simulation.schedule import Schedule

_SESSION_S: Final = 10.0
_MOST: Final = 3
_LIVE_WITHIN_S: Final = 900.0
_REST_S: Final = 60.0
_FREEZES: Final = (0.5, 4.0, 12.0, 40.0)
_GROWS_S: Final = (0.001, 0.05, 1.0)
# an offset that is set has what is above it sent again
_REPEATS: Final = frozenset(("recreate", "retention", "forget offsets"))
_FIRST_MADE: Final = 1000  # topic ids of the relays' own
_TOML: Final = """
state = "/nowhere/STATE"
memory = "MEMORYMiB"
[sources.app]
kind = "kafka"
insecure = true
topics = TOPICS
group = "g"
sinks = ["far", "off"]
[sources.app.consumer]
"bootstrap.servers" = "localhost:9092"
[sinks.far]
kind = "kafka"
insecure = true
topic = "far.{schema}.{table}"
delivery = "DELIVERY"
positions_topic = "POSITIONS"
[sinks.far.producer]
"bootstrap.servers" = "localhost:9092"
[sinks.off]
kind = "kafka"
insecure = true
topic = "off.{schema}.{table}"
delivery = "DELIVERY"
positions_topic = "POSITIONS"
[sinks.off.producer]
"bootstrap.servers" = "localhost:9092"
"""


@cache
def _configuration(
    state: str, topics: tuple[str, ...], memory: int, delivery: str
) -> Config:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "walstream.toml"
        text = _TOML.replace("STATE", state).replace("TOPICS", str([*topics]))
        text = text.replace("DELIVERY", delivery).replace("POSITIONS", POSITIONS)
        file.write_text(text.replace("MEMORY", str(memory)), "utf-8")
        return load(file, {})


@dataclass(eq=False)
class Relay:
    """A process of the group, which is started again when it ends."""

    state: str
    process: Process
    memory: int = 32  # MiB
    stop: Stop | None = None
    client: SimConsumer | None = None
    wanted: bool = True


class Relays:
    """The members, the topics that they read, and those that they write."""

    def __init__(self, schedule: "Schedule", upstream: SimCluster) -> None:
        self.world = world = World(schedule.seed)
        self.cluster: SimCluster = SimCluster(world, self._partitions)
        self.cluster.zombies = True
        self.cluster.producer = RelayProducer
        self.cluster.transactional_producer = TransactionalRelayProducer
        read = (name for name in upstream.topics if name.startswith(UPSTREAM))
        self.topics = tuple(sorted(read))
        for number, name in enumerate(self.topics, 1):
            copied = [named(part, number) for part in upstream.topics[name].partitions]
            self.cluster.topics[name] = SimTopic(name, number, copied)
        self.cluster.draw_number(_FIRST_MADE)
        self.coordinator: Coordinator = Coordinator(
            Log(world, self.cluster, [*self.topics])
        )
        self.coordinator.made = self._made
        self.coordinator.began = self._began
        self._fences = bool(schedule.transactions)
        self.checker = ChainChecker(
            self.cluster, self.coordinator, transactional=self._fences
        )
        happens = {what for _, what in schedule.relays}
        self.checker.once = self._fences and not happens & _REPEATS
        self.disk = SimDisk(world)
        # none ends what lacks a marker of Kafka's: a known gap
        taken = [one for one in schedule.transactions if one[1] == "take over"]
        self._steps = [*schedule.relays, *taken]
        self.all: list[Relay] = []
        self._repairs: list[HistoryError] = []
        self._resting = False
        self.stops = 0
        self.strikes: dict[str, int] = {}
        self._stopping = self._over = False
        world.nemesis = self._strike

    def _partitions(self, name: str) -> int:
        if name == POSITIONS:
            return 1
        return len(self.cluster.topics[upstream_of(name)].partitions)

    def run(self) -> int:
        """Have all relayed, and see that it is; give a digest."""
        if not self.topics:
            return 0
        world = self.world
        parts.cluster, parts.disk = self.cluster, self.disk
        with taken_over(world, self.coordinator):
            try:
                self._run()
            finally:
                world.finish()
        return world.digest

    def _run(self) -> None:
        world = self.world
        self.join()
        last = 0.0
        for at, what in self._steps:
            world.at(at, lambda what=what: self._do(what))  # type: ignore[misc]
            last = max(last, at)
        self._grow()
        world.at(last + _REST_S, self._rest)
        world.wait(lambda: self._over)

    def _grow(self) -> None:
        self.coordinator.log.grow()
        if not self._resting:
            self.world.at(self.world.random.choice(_GROWS_S), self._grow)

    # lives

    def join(self) -> None:
        if sum(one.wanted for one in self.all) < _MOST:
            name = f"relay {len(self.all)}"
            before = process_in(self.world, name)
            before.dead = True
            self.all.append(Relay(name, before))
            self._start(self.all[-1])

    def _start(self, relay: Relay) -> None:
        world = self.world
        if self._stopping or not relay.process.dead:
            return
        if self._repairs:
            world.at(1.0, lambda: self._start(relay))
            return
        process = relay.process = process_in(world, relay.state)
        with world.owned(process):
            relay.stop = stop = stop_of(world)
        delivery = "transactional" if self._fences else "idempotent"
        config = _configuration(relay.state, self.topics, relay.memory, delivery)

        def run() -> None:
            try:
                Worker(config, "app", Options(), stop).run()
            except HistoryError as error:
                self._ask(error)
            except WalstreamError as error:
                Violation(f"{relay.state} stopped: {error!r}")
            finally:
                process.dead = True
                if client := relay.client:
                    self.coordinator.leave(client)
            if relay.wanted:
                world.at(1.0, lambda: self._start(relay))

        world.note(f"start {relay.state}")
        world.spawn(process, run)

    def _do(self, what: str) -> None:
        self.world.note(what)
        if what == "take over":
            take_over(self.cluster)
        else:
            STEPS[what](self)

    def _began(self, client: SimConsumer, place: Place, offset: int) -> None:
        (relay,) = (one for one in self.all if one.client is client)
        folder = f"/nowhere/{relay.state}/app"
        self.checker.began(place, offset, self.disk.folders.get(folder, {}))

    def _made(self, client: SimConsumer) -> None:
        for relay in self.all:
            if relay.process is client.owner:
                relay.client = client

    def _ask(self, error: HistoryError) -> None:
        """Have an operator do what an error says; he stops all members for it."""
        self.stops += 1
        if not self._repairs:
            self.world.at(1.0, self._repair)
        self._repairs.append(error)

    def _repair(self) -> None:
        alive = [one for one in self.all if not one.process.dead]
        for one in alive:
            if one.stop is not None:
                one.stop.request()
        if alive:
            self.world.at(1.0, self._repair)
            return
        self.world.note("repaired")
        for error in self._repairs:
            where = error.repair.command
            for place in self.coordinator.log.visible:
                named = f"--topic {place.topic}"
                if f"{named}:{place.partition} " in where or f"{named} " in where:
                    self._reset(place)
        self._repairs.clear()

    def _reset(self, place: Place) -> None:
        """Let the group go on with the oldest record of a partition."""
        low = self.coordinator.log.low.get(place, 0)
        self.coordinator.offsets[place], self.coordinator.notes[place] = low, ""
        self.checker.reset(place)

    def kill(self, relay: Relay) -> None:
        world, process = self.world, relay.process
        if process.dead:
            return
        process.dead = True
        world.note(f"killed {relay.state}")
        self.cluster.lose(process)
        self.checker.excuse(process)
        if client := relay.client:
            world.at(_SESSION_S, lambda: self.coordinator.expel(client))
        if relay.wanted:
            world.at(world.random.choice((0.05, 2.0, 30.0)), lambda: self._start(relay))

    def freeze(self, relay: Relay) -> None:
        world, process = self.world, relay.process
        seconds = world.random.choice(_FREEZES)
        if process.dead or process.frozen_until > world.now:
            return
        world.note(f"freeze {relay.state} {seconds}")
        process.frozen_until = world.now + seconds
        if seconds > _SESSION_S and (client := relay.client):
            world.at(_SESSION_S, lambda: self.coordinator.expel(client))

    @property
    def any(self) -> Relay:
        alive = [one for one in self.all if not one.process.dead]
        return self.world.random.choice(alive or self.all)

    def _strike(self, _name: str) -> None:
        """Meet a call of a port."""
        world, process = self.world, self.world.owner
        if process is None:
            return
        for what in [*self.strikes]:
            self.strikes[what] -= 1
            if self.strikes[what] >= 0:
                continue
            del self.strikes[what]
            relay = next(one for one in self.all if one.process is process)
            if what == "kill":
                self.kill(relay)
                raise Killed
            self.freeze(relay)
        if process.frozen_until > world.now:
            world.wait(lambda: False, process.frozen_until - world.now)

    # the end

    def _rest(self) -> None:
        self._resting = True
        self.strikes.clear()
        self.cluster.away_until = self.coordinator.away_until = 0.0
        self.cluster.slow.clear()
        for producer in self.cluster.producers:
            producer.failing = 0
        self.coordinator.log.grow_whole()
        if not any(one.wanted for one in self.all):
            self.join()
        deadline = self.world.now + _LIVE_WITHIN_S

        def look() -> None:
            if not self._left():
                self._stop()
            elif self.world.now > deadline:
                raise Violation(f"liveness: not relayed: {self._left()}")
            else:
                self.world.at(0.5, look)

        look()

    def _left(self) -> list[str]:
        return [*self.checker.left()]

    def _stop(self) -> None:
        self._stopping = True
        for one in self.all:
            one.wanted = False
            if one.stop is not None:
                one.stop.request()
        deadline = self.world.now + _LIVE_WITHIN_S

        def look() -> None:
            self._over = all(one.process.dead for one in self.all)
            if not self._over and self.world.now > deadline:
                raise Violation("liveness: a relay that is to stop does not")
            self.world.at(0.5, look)

        look()
