"""Several instances of one source: a standby, a copy of a state, one that thaws.

All of them are processes of one world with one slot. What a dead or frozen one has on
the wire arrives when it arrives, behind records of its successor if need be. Nothing is
lost, whoever ends; what comes again comes behind where it stands first.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tests.simulation.checker import Checker
from tests.simulation.consumer import SimGroup
from tests.simulation.disk import SimDisk
from tests.simulation.faults import TRANSACTION_FAULTS
from tests.simulation.host import process_in, stop_of
from tests.simulation.installation import PARTITIONS, configuration, parts
from tests.simulation.instance_steps import FAULTS
from tests.simulation.kafka import SimCluster
from tests.simulation.kafka_transactions import settle
from tests.simulation.server import SimServer
from tests.simulation.tables import SimTable
from tests.simulation.world import Killed, Process, Violation, World
from walstream.config.run_options import Options
from walstream.errors import ConfigError, HistoryError, SlotLost, WalstreamError
from walstream.pipeline.shutdown import Stop
from walstream.service.worker import Worker

if TYPE_CHECKING:
    from tests.simulation.schedule import Schedule

_TABLES: Final = ("one", "two")
_MOST: Final = 5  # instances
_TIMEOUT_S: Final = 60.0  # wal_sender_timeout
_KNOWS_S: Final = _TIMEOUT_S / 2  # frozen for longer, it takes its slot for lost
_NOTICES_S: Final = 0.5  # after it thawed
_LIVE_WITHIN_S: Final = 600.0
_REST_S: Final = 130.0  # after which nothing is frozen any more
_FREEZES: Final = (0.4, 5.0, 28.0, 45.0, 75.0, 120.0)
_MAY_END: Final = (ConfigError, HistoryError, SlotLost)  # exit codes 2 and 3
FIRST: Final = "first"
NUMBERED: Final = "number"  # names of all others begin so


@dataclass
class Instance:
    """A configured walstream, which is started again when it is killed."""

    state: str
    options: Options
    process: Process
    stop: Stop | None = None
    ended: str = ""  # the error that it ended with
    thawed: float = -1.0  # when it last continued that had been frozen for long
    idle: bool = False  # was it frozen between two turns of its loop?

    @property
    def folder(self) -> str:
        return f"/nowhere/{self.state}/app"


class Instances:
    """The instances of one source, in a world of their own."""

    def __init__(self, schedule: "Schedule") -> None:
        self.schedule = schedule
        self.world = world = World(schedule.seed)
        tables = [SimTable(101 + at, name) for at, name in enumerate(_TABLES)]
        self.server: SimServer = SimServer(world, tables)
        self.cluster: SimCluster = SimCluster(world, lambda topic: PARTITIONS[topic[0]])
        self.cluster.zombies = True
        self.cluster.sending = self._sending
        self.disk = SimDisk(world)
        self.checker = Checker(self.server, self.cluster)
        # without transactions, what a dead one sent arrives behind its successor's
        self.checker.once = bool(schedule.transactions) and schedule.once
        self.disk.written = self.checker.written
        self.all: list[Instance] = []
        self.steps = [*schedule.instances]
        self._kill_after = -1  # calls of ports, by whoever makes them
        self._stopping = self._over = False
        world.nemesis = self._strike

    def run(self) -> int:
        """Run them, and see that nothing is lost; give a digest."""
        world = self.world
        last = 0.0
        self._add(FIRST, Options())
        world.wait(lambda: bool(self.server.slots), _LIVE_WITHIN_S)
        for at, what in self.steps:
            world.at(at, lambda what=what: self._do(what))  # type: ignore[misc]
            last = max(last, at)
        for at, what in self.schedule.transactions[1:]:
            world.at(at, lambda what=what: self._disturb(what))  # type: ignore[misc]
            last = max(last, at)
        world.at(last + _REST_S, self._rest)
        world.wait(lambda: self._over)
        world.finish()
        if any(self.cluster.transactions.hanging()):
            return world.digest  # readers wait for the next start, as the docs say
        self.checker.kept()
        settle(self.cluster)
        self.checker.folded()
        group = SimGroup(self.cluster, "a.", world.random.getrandbits(32))
        group.run()
        rows_of = self.server.rows_of
        group.check({one.full_name: rows_of(one) for one in self.server.tables})
        return world.digest

    # lives

    def _add(self, state: str, options: Options) -> None:
        instance = Instance(state, options, process_in(self.world, state))
        self.all.append(instance)
        self._start(instance)

    def _start(self, instance: Instance) -> None:
        if self._stopping:
            return
        world = self.world
        process = instance.process = process_in(world, instance.state)
        instance.thawed = -1.0
        with world.owned(process):
            instance.stop = stop = stop_of(world)
        config = configuration(
            state=instance.state,
            detach_after="1h",
            skip=self.schedule.skips,
            transactional=bool(self.schedule.transactions),
        )

        def run() -> None:
            try:
                Worker(config, "app", instance.options, stop).run()
            except WalstreamError as error:
                if not isinstance(error, _MAY_END):
                    Violation(f"{instance.state} stopped: {error!r}")
                instance.ended = repr(error)
                self.checker.excuse(process)  # as a kill in its start does
                world.note(f"{instance.state} ended")
            finally:
                process.dead = True

        world.note(f"start {instance.state}")
        world.spawn(process, run)

    def _kill(self, instance: Instance) -> None:
        world, process = self.world, instance.process
        if process.dead:
            return
        process.dead = True
        world.note(f"killed {instance.state}")
        self.cluster.lose(process)
        self.checker.excuse(process)
        self.server.cut(process)
        world.at(world.random.choice((0.05, 2.0, 20.0)), lambda: self._start(instance))

    def _freeze(self, instance: Instance, seconds: float) -> None:
        world, process = self.world, instance.process
        if process.dead or process.frozen_until > world.now:
            return
        world.note(f"freeze {instance.state} {seconds}")
        thaw = process.frozen_until = world.now + seconds
        if seconds > _TIMEOUT_S:
            world.at(_TIMEOUT_S, lambda: self.server.cut(process))
        if seconds > _KNOWS_S:
            instance.thawed, instance.idle = thaw, process.port == "poll"

    @property
    def _reader(self) -> Instance:
        """The one that reads the slot, else the first that lives."""
        owners = [sender.owner for sender in self.server.readers()]
        alive = [one for one in self.all if not one.process.dead]
        reading = [one for one in alive if one.process in owners]
        return (reading or alive or self.all)[0]

    # the nemesis at each call of a port, and as producers send

    def _strike(self, name: str) -> None:
        world = self.world
        process = world.owner
        if process is None:
            return
        process.port = name
        if self._kill_after >= 0:
            self._kill_after -= 1
            if self._kill_after < 0:
                self._kill(next(one for one in self.all if one.process is process))
                raise Killed
        if name == "produce":
            self._see_no_gap(process)
            if not self.schedule.transactions:  # else it is fenced: nothing is written
                self._see_new_connection(process)
        if process.frozen_until > world.now:  # a task that waited for something else
            world.wait(lambda: False, process.frozen_until - world.now)

    def _see_no_gap(self, process: Process) -> None:
        for sender in self.server.readers():
            if sender.owner is process and sender.skips:
                raise Violation(
                    f"{process.name} streams, though the slot is beyond its position"
                )

    def _see_new_connection(self, process: Process) -> None:
        """See that one that was frozen for long sends nothing of its old connection.

        What it puts at the end of a turn in which it was frozen is purged in the next.
        """
        for one in self.all:
            old = process.reads_since < one.thawed <= self.world.now
            if one.process is process and one.idle and old:
                raise Violation(f"{one.state} was frozen, and sends what it reads")

    def _sending(self, owner: Process | None, put: float) -> None:
        """See that one that was frozen for long gave up what it had."""
        now = self.world.now
        for one in self.all:
            if one.process is owner and put < one.thawed < now - _NOTICES_S:
                raise Violation(f"{one.state} was frozen, and sends what it had before")

    # what happens

    def _do(self, what: str) -> None:
        self.world.note(what)
        if what in _STARTS:
            if len(self.all) < _MOST:
                _STARTS[what](self)
        else:
            FAULTS[what](self)

    def _disturb(self, what: str) -> None:
        self.world.note(what)
        TRANSACTION_FAULTS[what](self.cluster)

    def copy(self) -> None:
        """Start one with a copy of the first one's state."""
        name = self._new
        documents = self.disk.folders.get(self.all[0].folder, {})
        if "position" in documents:
            self.disk.folders[f"/nowhere/{name}/app"] = dict(documents)
            self._add(name, Options())

    def bare(self) -> None:
        """Start one that has no state, and no consent: it may stream nothing."""
        name = self._new
        self._add(name, Options())
        bare = self.all[-1]

        def see() -> None:
            if not bare.ended and self.checker.stored.get(bare.folder):
                raise Violation(f"{name} has no state, and took the slot")

        self.world.at(20.0, see)

    def twin(self) -> None:
        """Start one more with the first one's folder."""
        self._add(FIRST, Options())

    def stand_by(self, *, take_over: bool = False) -> None:
        self._add(self._new, Options(adopt_slot=True, take_over=take_over))

    @property
    def _new(self) -> str:
        return f"{NUMBERED} {len(self.all)}"

    def commit(self) -> None:
        self.server.commit(self.world.random.getrandbits(32))

    def kill(self) -> None:
        self._kill(self._reader)

    def kill_at_a_call(self) -> None:
        self._kill_after = self.world.random.choice((1, 5, 30, 200))

    def freeze(self, *, behind: bool = False) -> None:
        """Stop the reader for a while, with records that it could not send."""
        world = self.world
        seconds = world.random.choice(_FREEZES)
        if behind:
            later = seconds + world.random.choice((0.3, 2.0))
            self.cluster.away_until = world.now + later
            for _ in range(4):
                self.commit()
        world.at(0.2, lambda: self._freeze(self._reader, seconds))

    # the end

    def _rest(self) -> None:
        self.server.down_until = self.cluster.away_until = 0.0
        self.cluster.slow.clear()
        self.cluster.transactions.leaderless.clear()
        self._kill_after = -1
        for producer in self.cluster.producers:
            producer.failing = 0
        self.commit()
        self.world.watch(
            lambda: self.checker.arrived, self._stop, _LIVE_WITHIN_S, self._late
        )

    def _late(self) -> str:
        ends = {one.state: one.ended for one in self.all}
        return f"{self.checker.state()}, ended: {ends}"

    def _stop(self) -> None:
        """Stop those that are left; see that all end."""
        self._stopping = True
        for one in self.all:
            if one.stop is not None and not one.process.dead:
                one.stop.request()
        self.world.watch(
            lambda: all(one.process.dead for one in self.all),
            self._end,
            _LIVE_WITHIN_S,
            lambda: "one that is to stop does not",
        )

    def _end(self) -> None:
        self._over = True


_STARTS: Final[dict[str, Callable[[Instances], None]]] = {
    "standby": Instances.stand_by,
    "take over": lambda them: them.stand_by(take_over=True),
    "copy": Instances.copy,
    "bare": Instances.bare,
    "twin": Instances.twin,
}


def made(schedule: "Schedule") -> Instances:
    """Make the instances of a schedule; the ports have to be `installed`."""
    them = Instances(schedule)
    parts.server, parts.cluster, parts.disk = them.server, them.cluster, them.disk
    return them


def run(schedule: "Schedule") -> int:
    them = made(schedule)
    try:
        return them.run()
    finally:
        them.world.finish()
