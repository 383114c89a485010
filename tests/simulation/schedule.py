"""One schedule: what is written, what goes wrong and when, drawn from a seed; its run."""

import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import orjson

from tests.simulation.checker import Checker, phase_of
from tests.simulation.consumer import SimGroup
from tests.simulation.disk import Documents, SimDisk
from tests.simulation.installation import PARTITIONS, configuration, parts
from tests.simulation.kafka import SimCluster
from tests.simulation.server import SimServer
from tests.simulation.tables import SimTable
from tests.simulation.world import Killed, Process, SimWaker, Violation, World, void
from walstream.config.run_options import Options
from walstream.errors import WalstreamError
from walstream.pipeline.shutdown import Stop
from walstream.service.worker import Worker
from walstream.sources.postgres.runner import PostgresRunner
from walstream.sources.postgres.detached.detached_sink import AWAY

_LIVE_WITHIN_S: Final = 150.0
_AFTER_S: Final = 1e-6
_STATE: Final = "/nowhere/state/app"
_SLOT: Final = "walstream"
TABLES: Final = ("one", "two", "three")
EDITS: Final = ("drop slot", "advance slot", "yesterday")


@dataclass(frozen=True)
class Schedule:
    """A schedule, written so that parts of it can be left out."""

    seed: int  # of all that is drawn on the way: delays, pieces
    commits: list[tuple[float, int]]  # when, and the seed of what is written
    faults: list[tuple[float, str]]  # when, and what
    kills: list[int]  # after so many calls of ports: SIGKILL
    freezes: list[tuple[int, float]]  # after so many calls, and for how long
    # when, and which table is to be read beside the stream; "!": and replaced
    reads: list[tuple[float, str]] = field(default_factory=list)

    @classmethod
    def of(cls, seed: int) -> "Schedule":
        """Draw one."""
        draw = random.Random(seed)  # noqa: S311 - repeatable on purpose
        span = draw.choice((0.5, 3.0, 3.0, 20.0))
        times = sorted(draw.uniform(0, span) for _ in range(draw.choice((3, 8, 20))))
        kinds = draw.sample(list(FAULTS), draw.randint(0, 4))
        faults = [
            (round(draw.uniform(0, span), 4), draw.choice(kinds))
            for _ in range(draw.choice((0, 2, 4)) if kinds else 0)
        ]
        if draw.random() < 0.05:
            faults.append((round(draw.uniform(0, span), 4), draw.choice(EDITS)))
        most = draw.choice((60, 300, 1500))
        kills = [draw.randint(1, most) for _ in range(draw.choice((0, 1, 1, 2, 4)))]
        freezes = (
            [(draw.randint(1, most), draw.choice((0.5, 5.0, 45.0)))]
            if draw.random() < 0.1
            else []
        )
        reads: list[tuple[float, str]] = []
        if draw.random() < 0.3:
            names = [f"public.{name}" for name in TABLES]
            names += draw.sample([f"public.{name}!" for name in TABLES], 1)
            reads = [(round(draw.uniform(0, span), 4), name) for name in names]
        commits = [(round(at, 4), draw.getrandbits(32)) for at in times]
        return cls(seed, commits, sorted(faults), kills, freezes, sorted(reads))

    def to_json(self) -> str:
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def from_json(cls, text: str) -> "Schedule":
        found = orjson.loads(text)
        for name in ("commits", "faults", "freezes", "reads"):
            found[name] = [tuple(one) for one in found.get(name, ())]
        return cls(**found)


@dataclass
class Outcome:
    """How a schedule went."""

    violation: str = ""
    stopped: str = ""  # the error that an edit led to
    digest: int = 0
    lives: int = 0
    detached: int = 0
    records: int = 0
    repeated: int = 0
    calls: dict[str, int] = field(default_factory=dict)


class Run:
    """A schedule on its way."""

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self.world = world = World(schedule.seed)
        tables = [SimTable(101 + at, name) for at, name in enumerate(TABLES)]
        read = {name.rstrip("!") for _, name in schedule.reads}
        for table in tables:
            if table.full_name in read:
                table.fill(5)
        self.server = SimServer(world, tables)
        self.cluster = SimCluster(world, lambda topic: PARTITIONS[topic[0]])
        self.disk = SimDisk(world)
        self.checker = Checker(self.server, self.cluster)
        self.disk.written = self._written
        self.disk.discarded = self.checker.discarded
        self._yesterday: Documents = {}
        self._kills = list(schedule.kills)
        self._freezes = list(schedule.freezes)
        self._count = 0  # of calls since the last kill
        self._process = Process(world)
        self._away: dict[str, tuple[Process, Stop]] = {}  # workers of detached sinks
        self.detached = 0  # sinks, over all
        self._stop: Stop | None = None
        self._edited = ""
        self._begun = False
        self._over = self._denied = False
        self._asked = 0  # wishes of an operator that were not heard yet
        self._worker: Worker | None = None
        world.nemesis = self._strike

    def _written(self, folder: str, documents: Documents) -> None:
        self.checker.written(folder, documents)
        if not self._begun and "position" in documents:
            self._begun = True
            self._yesterday = documents
            self._begin()

    def _begin(self) -> None:
        """Let the schedule's time begin, now that there is a slot."""
        world = self.world
        last = 0.0
        for at, seed in self._schedule.commits:
            world.at(at, lambda seed=seed: self._commit(seed))  # type: ignore[misc]
            last = max(last, at)
        for at, what in self._schedule.faults:
            world.at(at, lambda what=what: self._fault(what))  # type: ignore[misc]
            last = max(last, at)
        for at, name in self._schedule.reads:
            world.at(at, lambda name=name: self._ask(name))  # type: ignore[misc]
            last = max(last, at)
        world.at(last + 1.0, self._rest)
        world.at(0.5, self._supervise)

    def _ask(self, name: str) -> None:
        """Have a table read, as an operator does, who repeats what was not answered."""
        done: list[str] = []

        def ask() -> None:
            part = self._worker._part if self._worker else None  # noqa: SLF001
            if isinstance(part, PostgresRunner):
                table, replaces = name.rstrip("!"), name.endswith("!")
                done.append(part.backfill([table], replace=replaces, where=""))

        def again() -> None:
            if done != [""]:
                done.clear()
                self.world.at(0.0, ask, self._process)
                self.world.at(0.3, again)
            else:
                self._asked -= 1

        self._asked += 1
        again()

    def _commit(self, seed: int) -> None:
        self.server.commit(seed)
        if seed % 5 == 0:
            self.server.grow()
        if seed % 7 == 0:
            self.server.checkpoint()

    def _fault(self, what: str) -> None:
        self.world.note(what)
        if what in EDITS:
            self._edited = what
        (FAULTS | _OPERATOR)[what](self)

    # the nemesis at each call of a port

    def _strike(self, _name: str) -> None:
        self._count += 1
        if self._kills and self._count >= self._kills[0]:
            self._kills.pop(0)
            self.kill(self.world.owner or self._process)
            raise Killed
        if self._freezes and self._count >= self._freezes[0][0]:
            seconds = self._freezes.pop(0)[1]
            process = self.world.owner or self._process
            # nothing of it runs before this very call goes on
            process.frozen_until = self.world.now + seconds + _AFTER_S
            self.world.wait(lambda: False, seconds)

    def kill(self, process: Process) -> None:
        self._count = 0
        process.dead = True
        self.world.note(f"killed {process.name}")
        self.cluster.lose(process)
        self.server.cut(process)

    # what the supervisor does

    def _supervise(self) -> None:
        """Keep a worker for each sink that is detached."""
        documents = self.disk.folders.get(_STATE, {})
        for sink in PARTITIONS:
            alive = sink in self._away and not self._away[sink][0].dead
            if not alive and phase_of(documents, sink) == AWAY:
                self._start(sink)
        self.world.at(0.5, self._supervise)

    def _start(self, sink: str) -> None:
        process = Process(self.world, sink)
        self.detached += 1
        with self.world.owned(process):
            stop = Stop(SimWaker(self.world), 10.0)  # type: ignore[arg-type]
        self._away[sink] = process, stop

        def run() -> None:
            try:
                Worker(configuration(), "app", Options(sink=sink), stop).run()
            except WalstreamError as error:
                if not self._edited:
                    Violation(f"the worker of sink {sink} stopped: {error!r}")
            finally:
                process.dead = True

        self.world.note(f"worker of {sink}")
        self.world.spawn(process, run)

    def _rest(self) -> None:
        """Let nothing go wrong any more; wait until everything has arrived."""
        self._kills.clear()
        self._freezes.clear()
        self.server.down_until = self.cluster.away_until = self.disk.full_until = 0.0
        self.cluster.denied_until = 0.0
        self.disk.failing = 0
        self.server.roll_back()
        self.cluster.slow.clear()
        for producer in self.cluster.producers:
            producer.failing = 0
        self._deadline = self.world.now + _LIVE_WITHIN_S
        self._look()

    def _look(self) -> None:
        reading = any(name.startswith(("beside/", "away/")) for name in self.disk.folders[_STATE])
        if (
            self.checker.arrived
            and not (reading or self._asked)
            and self._stop is not None
        ):
            self.world.note("arrived")
            self._over = True
            self._stop.request()
        elif self.world.now > self._deadline:
            raise Violation(f"liveness: {self.checker.state()}")
        else:
            self.world.at(0.5, self._look)

    # the lives of the program

    def run(self) -> Outcome:
        outcome = Outcome()
        Violation.first = ""
        parts.server, parts.cluster, parts.disk = self.server, self.cluster, self.disk
        try:
            while not self._live(outcome):
                self.world.wait(lambda: False, self.world.random.choice((0.05, 1.5)))
            if not outcome.stopped:
                self.checker.folded()
                self._consume()
        except (Violation, Killed):
            outcome.violation = Violation.first
        except Exception as error:  # noqa: BLE001 - none may leave the program
            outcome.violation = f"a defect: {error!r}"
        finally:
            self.world.finish()
        outcome.detached = self.detached
        outcome.digest = self.world.digest
        outcome.records = self.checker.records
        outcome.repeated = self.checker.repeated
        outcome.calls = dict(self.world.calls)
        return outcome

    def _consume(self) -> None:
        """Have consumers read what is there."""
        group = SimGroup(self.cluster, "a.", self._schedule.seed)
        group.run()
        group.check({one.full_name: one.rows for one in self.server.tables})

    def _live(self, outcome: Outcome) -> bool:
        """Run the program until it ends; False: it was killed."""
        outcome.lives += 1
        self._process = Process(self.world)
        with self.world.owned(self._process):
            self._stop = Stop(SimWaker(self.world), 10.0)  # type: ignore[arg-type]
            self._worker = Worker(configuration(), "app", Options(), self._stop)
            try:
                self._worker.run()
            except Killed:
                if Violation.first:
                    raise
                return False
            except WalstreamError as error:
                if self._denied:  # an operator gives the right, and starts it again
                    self.cluster.denied_until = 0.0
                    return False
                if not self._edited:
                    raise Violation(f"it stopped: {error!r}") from error
                outcome.stopped = str(error)
            finally:
                self._process.dead = True
                self._stop = self._worker = None
        if not outcome.stopped:
            self.checker.ended(_STATE, self.disk.folders.get(_STATE, {}))
        return self._over or bool(outcome.stopped)

    # what goes wrong

    def stop(self) -> None:
        """Ask it to stop, as systemd does; it is started again."""
        if self._stop is not None:
            self._stop.request()

    def away(self) -> None:
        self.cluster.away_until = self.world.now + self.world.random.choice((0.2, 8.0))

    def slow(self) -> None:
        topics = sorted(self.cluster.topics)
        if topics:
            topic = self.world.random.choice(topics)
            part = self.world.random.randrange(
                len(self.cluster.topics[topic].partitions)
            )
            self.cluster.slow[topic, part] = self.world.now + 5.0

    def slow_sink(self) -> None:
        """Have one sink lag behind the other, for longer than it may."""
        draw = self.world.random
        sink, until = draw.choice(sorted(PARTITIONS)), draw.choice((6.0, 15.0))
        for name, topic in self.cluster.topics.items():
            for part in range(len(topic.partitions)):
                if name.startswith(sink):
                    self.cluster.slow[name, part] = self.world.now + until

    def deny(self) -> None:
        """Take the rights to one sink's topics away for a while."""
        self.cluster.denied_until = self.world.now + 4.0
        self._denied = True

    def refuse(self) -> None:
        """Have a batch of each producer given up, after a while in which more came."""
        self.cluster.away_until = max(self.cluster.away_until, self.world.now + 0.3)
        for _ in range(3):
            self.server.commit(self.world.random.getrandbits(32))
        for producer in self.cluster.producers:
            producer.failing = 1

    def fence(self) -> None:
        for producer in self.cluster.producers:
            producer.fail()

    def full(self) -> None:
        self.disk.full_until = self.world.now + 3.0

    def fail_write(self) -> None:
        self.disk.failing = 2

    def hold(self) -> None:
        """Have commits wait for a standby: they are streamed before they are seen."""
        self.server.held_until = self.world.now + 2.0

    def set_clock(self) -> None:
        self.world.wall += self.world.random.choice((-3600.0, 3600.0, 20.0))

    def kill_now(self) -> None:
        self._kills.insert(0, 0)

    def drop_slot(self) -> None:
        self.server.cut()
        self.server.slots.pop(_SLOT, None)

    def advance_slot(self) -> None:
        for slot in self.server.slots.values():
            slot.confirmed = slot.on_disk = self.server.wal_end

    def yesterday(self) -> None:
        """Kill it, and bring the state folder of before back."""
        if not self._process.dead:
            self._kills.insert(0, 0)
        self.world.at(0.01, self._bring_back)

    def _bring_back(self) -> None:
        if self._process.dead:
            self.disk.folders[_STATE] = self._yesterday
            self.checker.restored(_STATE, self._yesterday)
            for _, name in self._schedule.reads:  # what was asked for is forgotten
                self._ask(name)
        else:
            self.world.at(0.005, self._bring_back)


Fault = Callable[[Run], None]
FAULTS: Final[dict[str, Fault]] = {
    "cut": lambda run: run.server.cut(),
    "server crash": lambda run: run.server.crash(),
    "checkpoint": lambda run: run.server.checkpoint(),
    "grow": lambda run: run.server.grow(),
    "begin": lambda run: void(run.server.begin()),
    "standby": Run.hold,
    "message": lambda run: run.server.say(),
    "Kafka away": Run.away,
    "slow partition": Run.slow,
    "slow sink": Run.slow_sink,
    "deny": Run.deny,
    "refuse": Run.refuse,
    "fence": Run.fence,
    "full disk": Run.full,
    "failed write": Run.fail_write,
    "clock": Run.set_clock,
    "kill": Run.kill_now,
    "stop": Run.stop,
}
_OPERATOR: Final[dict[str, Fault]] = {
    "drop slot": Run.drop_slot,
    "advance slot": Run.advance_slot,
    "yesterday": Run.yesterday,
}


def run(schedule: Schedule) -> Outcome:
    """Run one schedule; the ports have to be `installed`."""
    return Run(schedule).run()


def without(schedule: Schedule, part: str, at: int) -> Schedule:
    """Leave one element out."""
    changed: list[Any] = list(getattr(schedule, part))
    del changed[at]
    return replace(schedule, **{part: changed})
