"""One schedule, run: the lives of the program, until everything has arrived."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from tests.simulation import beside
from tests.simulation.backfill import SimSnapshot, given_up, unread
from tests.simulation.checker import Checker, phase_of
from tests.simulation.consumer import SimGroup
from tests.simulation.ddl import (
    DDL,
    attach_all,
    heal,
    keyless,
    partitioned,
    reading,
    settled,
)
from tests.simulation.disk import Documents, SimDisk, read
from tests.simulation.faults import (
    APART,
    EDITS,
    FAULTS,
    STATE,
    TRANSACTION_FAULTS,
)
from tests.simulation.host import process_in, stop_of
from tests.simulation.installation import PARTITIONS, configuration, parts
from tests.simulation.kafka import SimCluster
from tests.simulation.kafka_transactions import settle
from tests.simulation.outcome import Outcome
from tests.simulation.schedule import TABLES, Schedule
from tests.simulation.server import SimServer
from tests.simulation.tables import SimTable
from tests.simulation.world import Killed, Process, Violation, World
from walstream.config.run_options import Options
from walstream.errors import (
    PermissionLacking,
    PublicationLost,
    RecordRefused,
    WalstreamError,
)
from walstream.pipeline.shutdown import Stop
from walstream.service.worker import Worker
from walstream.sources.postgres.detached.detached_sink import AWAY
from walstream.sources.postgres.runner import PostgresRunner

_LIVE_WITHIN_S: Final = 700.0  # a table that was refused waits for 600 s at most
_AFTER_S: Final = 1e-6
_STARTED_S: Final = 90.0  # a start waits for transaction.timeout.ms where one hangs
_CURABLE: Final = (PermissionLacking, RecordRefused)


class Run:
    """A schedule on its way."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.world = world = World(schedule.seed)
        tables = [SimTable(101 + at, name) for at, name in enumerate(TABLES)]
        if schedule.ddl:
            tables[-1].keyed = True
            tables += partitioned(111)
        filled = dict(schedule.rows)
        read = {name.rstrip("!") for _, name in schedule.reads}
        for table in tables:
            if table.full_name in read:
                table.fill(5)
            elif table.name in filled:
                table.fill(filled[table.name])
        self.server: SimServer = SimServer(world, tables)
        attach_all(self.server)
        self.cluster = SimCluster(world, lambda topic: PARTITIONS[topic[0]])
        self.disk = SimDisk(world)
        self.checker = Checker(self.server, self.cluster)
        self.checker.once = schedule.once
        self.checker.whole = schedule.whole
        self.disk.written = self._written
        self.disk.discarded = self.checker.discarded
        self.yesterday: Documents = {}
        self.kills = list(schedule.kills)
        self._freezes = list(schedule.freezes)
        self._count = 0  # of calls since the last kill
        self.process = process_in(world)
        self._away: dict[str, tuple[Process, Stop]] = {}  # workers of detached sinks
        self.detached = 0  # sinks
        self.stop: Stop | None = None
        self._edited = ""
        self._begun = False
        self._over = False
        self._away_error = ""
        self.whole = True  # nobody deleted records
        self._asked = 0  # wishes of an operator that were not heard yet
        self._due = 0  # what is still to be written, or altered
        self._worker: Worker | None = None
        self._repeated: set[str] = set()  # tables that were given up
        world.nemesis = self._strike

    def _written(self, folder: str, documents: Documents) -> None:
        self.checker.written(folder, documents)
        if not self._begun and "position" in documents:
            self._begun = True
            self.yesterday = documents
            self._begin()

    def _begin(self) -> None:
        """Let the schedule's time begin, now that there is a slot."""
        world = self.world
        last = 0.0
        schedule = self.schedule
        plans: list[tuple[Sequence[tuple[float, Any]], Callable[[Any], None]]] = [
            (schedule.commits, self._commit),
            (schedule.faults, self._fault),
            (schedule.reads, self.ask),
            (schedule.ddl, self._alter),
            (schedule.transactions[1:], self._disturb),
        ]
        for plan, act in plans:
            for at, what in plan:
                world.at(at, partial(act, what))
                last = max(last, at)
        world.at(last + 1.0, self._rest)
        world.at(0.5, self._supervise)

    def ask(self, name: str) -> None:
        """Have a table read, as an operator does, who repeats what was not answered."""
        done: list[str] = []

        def ask() -> None:
            part = self._worker._part if self._worker else None
            if isinstance(part, PostgresRunner):
                table, replaces = name.rstrip("!"), name.endswith("!")
                done.append(part.backfill([table], replace=replaces, where=""))

        def again() -> None:
            if done != [""]:
                done.clear()
                self.world.at(0.0, ask, self.process)
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
        (FAULTS | EDITS | APART)[what](self)

    def _disturb(self, what: str) -> None:
        self.world.note(what)
        TRANSACTION_FAULTS[what](self.cluster)

    def _alter(self, what: str) -> None:
        self.world.note(what)
        DDL[what](self)

    def later(self, pause: float, act: Callable[[], None]) -> None:
        """Have the tables' owner do something, before all has arrived."""

        def do() -> None:
            act()
            self._due -= 1

        self._due += 1
        self.world.at(pause, do)

    # the nemesis at each call of a port

    def _strike(self, _name: str) -> None:
        self._count += 1
        if self.kills and self._count >= self.kills[0]:
            self.kills.pop(0)
            self.kill(self.world.owner or self.process)
            raise Killed
        if self._freezes and self._count >= self._freezes[0][0]:
            seconds = self._freezes.pop(0)[1]
            process = self.world.owner or self.process
            # nothing of it runs before this very call goes on
            process.frozen_until = self.world.now + seconds + _AFTER_S
            self.world.wait(lambda: False, seconds)

    def kill(self, process: Process) -> None:
        self._count = 0
        process.dead = True
        self.world.note(f"killed {process.name}")
        self.cluster.lose(process)
        self.checker.excuse(process)
        self.server.cut(process)
        for driver in self.server.drivers:  # what it ordered may be slow to end
            if self.world.random.random() < 0.5:
                driver.process.frozen_until = self.world.now + 3.0

    # what the supervisor does

    def _supervise(self) -> None:
        """Keep a worker for each sink that is detached."""
        documents = self.disk.folders.get(STATE, {})
        for sink in PARTITIONS:
            alive = sink in self._away and not self._away[sink][0].dead
            if not alive and phase_of(documents, sink) == AWAY:
                self._start(sink)
        self.world.at(0.5, self._supervise)

    def _start(self, sink: str) -> None:
        process = process_in(self.world, sink)
        self.detached += 1
        with self.world.owned(process):
            stop = stop_of(self.world)
        self._away[sink] = process, stop

        def run() -> None:
            try:
                Worker(parts.config, "app", Options(sink=sink), stop).run()
            except WalstreamError as error:
                if not self._edited:
                    Violation(f"the worker of sink {sink} stopped: {error!r}")
            finally:
                process.dead = True

        self.world.note(f"worker of {sink}")
        self.world.spawn(process, run)

    def _rest(self) -> None:
        """Let nothing go wrong any more; wait until everything has arrived."""
        self.kills.clear()
        self._freezes.clear()
        self.server.down_until = self.cluster.away_until = self.disk.full_until = 0.0
        self.cluster.denied_until = 0.0
        self.cluster.widen()
        self.disk.failing = 0
        self.server.roll_back()
        self.cluster.slow.clear()
        self.cluster.transactions.leaderless.clear()
        for producer in self.cluster.producers:
            producer.failing = 0
        heal(self)
        self._deadline = self.world.now + _LIVE_WITHIN_S
        self._look()

    def _look(self) -> None:
        documents = self.disk.folders[STATE]
        self._ask_again(documents)
        away = any(name.startswith("away/") for name in documents)
        if (
            self.checker.arrived
            and not self._due
            and not (away or reading(self.server, documents) or self._asked)
            and not unread(documents)
            and self._settled(documents)
            and self.stop is not None
        ):
            self._over = not self._hangs
            self.world.note("arrived" if self._over else "hanging")
            self.stop.request()  # a start ends what hangs
            if self._over and self.whole:
                self.checker.kept()
            elif not self._over:
                self._look_later()
        elif self.world.now > self._deadline:
            waiting = away or reading(self.server, documents)
            if waiting and self.checker.arrived and self._hangs:
                # a start of minutes, and a sink that is detached earlier: a known gap
                self.whole = False
                self._over = True
                if self.stop is not None:
                    self.stop.request()
                return
            self._away_error = self._given_up() if self._edited else ""
            if not self._away_error or self.stop is None:
                raise Violation(f"liveness: {self.checker.state()}")
            self._over = True
            self.stop.request()
        else:
            self.world.at(0.5, self._look)

    @property
    def _hangs(self) -> bool:
        return any(self.cluster.transactions.hanging())

    def _look_later(self) -> None:
        if self.world.now > self._deadline:
            raise Violation(f"liveness: open {[*self.cluster.transactions.hanging()]}")
        self.world.at(_STARTED_S, self._look)

    @property
    def _mendable(self) -> bool:
        return bool(self.schedule.ddl) and not self._edited

    def _ask_again(self, documents: Documents) -> None:
        """Have tables read that the first backfill gave up, as an operator does."""
        for name in documents:
            _, _, table = name.partition("backfill/")
            if table and table not in self._repeated and given_up(documents, name):
                self._repeated.add(table)
                self.ask(f"{table}!")

    def _settled(self, documents: Documents) -> bool:
        """Return whether all that was altered is seen; write on until it is."""
        if not (self.schedule.ddl or self._edited == "publish less"):
            return True
        if keyless(documents):  # the next row shows that the key is back
            self.server.commit(self.world.random.getrandbits(32))
        return settled(self.server, documents)

    def _given_up(self) -> str:
        """Return why the worker of a sink cannot go on: an operator is asked for."""
        for sink in self._away:
            folder = self.disk.folders.get(f"{STATE}/away/{sink}", {})
            error = read(folder, "error")
            if error and phase_of(self.disk.folders[STATE], sink) == AWAY:
                return str(error["error"])
        return ""

    # the lives of the program

    def run(self) -> Outcome:
        outcome = Outcome()
        Violation.first = ""
        parts.server, parts.cluster, parts.disk = self.server, self.cluster, self.disk
        backfill = "initial" if self.schedule.rows else "never"
        parts.config = configuration(
            backfill,
            skip=self.schedule.skips,
            transactional=bool(self.schedule.transactions),
        )
        self.server.taken = SimSnapshot.of
        try:
            while not self._live(outcome):
                self.world.wait(lambda: False, self.world.random.choice((0.05, 1.5)))
            if not outcome.stopped:
                settle(self.cluster)
            if self.whole and not (outcome.stopped or self.checker.excused):
                self.checker.folded()
                self._consume()
            self.world.note(f"beside {beside.run(self.schedule)}")
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
        group = SimGroup(self.cluster, "a.", self.schedule.seed)
        group.run()
        root, rows_of = self.server.catalog.root, self.server.rows_of
        named = [one for one in self.server.tables if root(one.oid) is None]
        rows = {one.full_name: rows_of(one) for one in named}
        group.check(rows)
        self.world.note(f"read {beside.read(self.schedule, self.cluster, rows)}")

    def _live(self, outcome: Outcome) -> bool:
        """Run the program until it ends; False: it was killed."""
        outcome.lives += 1
        self.process = process_in(self.world)
        with self.world.owned(self.process):
            self.stop = stop_of(self.world)
            self._worker = Worker(parts.config, "app", Options(), self.stop)
            try:
                self._worker.run()
            except Killed:
                if Violation.first:
                    raise
                return False
            except WalstreamError as error:
                if isinstance(error, PublicationLost) and self._mendable:
                    heal(self)  # so that the tables can be read again
                    return False
                if isinstance(error, _CURABLE):
                    # an operator does what it says, and starts it again
                    self.cluster.denied_until = 0.0
                    self.cluster.widen()
                    return False
                if not self._edited:
                    raise Violation(f"it stopped: {error!r}") from error
                outcome.stopped = str(error)
            finally:
                self.process.dead = True
                self.stop = self._worker = None
        outcome.stopped = outcome.stopped or self._away_error
        if not outcome.stopped:
            self.checker.ended(STATE, self.disk.folders.get(STATE, {}))
        return self._over or bool(outcome.stopped)


def run(schedule: Schedule) -> Outcome:
    """Run one schedule; the ports have to be `installed`."""
    return Run(schedule).run()
