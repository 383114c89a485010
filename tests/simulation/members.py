"""Members of a consumer group with a database: each op takes effect exactly once.

The whole library runs: fetcher, lanes, threads, sessions, batches, barriers, in some
schedules its mirror. Kafka's client, the brokers' coordinator and the database are the
simulated ones. Members die, freeze, lose their partitions and their sessions; their
COMMITs' answers get lost.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from consumer import IdempotentConsumer, PostgresMirror
from consumer.group.assigned_partition import Place
from tests.simulation import retention
from tests.simulation.database import AppRow
from tests.simulation.group import SESSION_S, Coordinator, Log, SimConsumer
from tests.simulation.host import process_in
from tests.simulation.kafka import SimCluster
from tests.simulation.member_ports import Effects, taken_over
from tests.simulation.retention import Retention
from tests.simulation.scattered import scattered
from tests.simulation.target import SimTarget
from tests.simulation.world import Killed, Process, Violation, World

if TYPE_CHECKING:
    from tests.simulation.schedule import Schedule

_DSN: Final = "postgresql://localhost/target"
_GROUP: Final = "g"
_TOPICS: Final = "a."  # of one sink
_MOST: Final = 3
_LIVE_WITHIN_S: Final = 900.0
_SCATTERED: Final = 0.5  # share of mirrors that read rows from several partitions
_REST_S: Final = 130.0  # after which nothing is frozen any more
_FREEZES: Final = (0.5, 10.0, 60.0, 100.0)
_GROWS_S: Final = (0.001, 0.05, 1.0)
Name = tuple[str, int, int, int]
"""Topic, partition (-1 of a Truncate), LSN and seq_id of an op."""
STEPS: Final = (
    *("join", "join", "leave", "kill", "kill", "kill at a call", "kill at a call"),
    *("freeze", "freeze", "freeze at a call", "rebalance", "rebalance", "expel"),
    *("cut", "cut", "crash", "end sessions", "Kafka away"),
)


@dataclass(eq=False)
class Member:
    """A process of the group, which is started again when it was killed."""

    name: str
    process: Process
    consumer: IdempotentConsumer | None = None
    client: SimConsumer | None = None
    wanted: bool = True  # it runs, or will again


class Members:
    """A group that reads what a run left in Kafka, in a world of its own."""

    def __init__(
        self,
        schedule: "Schedule",
        cluster: SimCluster,
        wanted: Mapping[str, Mapping[str, AppRow]],
    ) -> None:
        """`wanted` are the rows that it ends with, by table."""
        self.world = world = World(schedule.seed)
        brokers = SimCluster(world, lambda _: 0)
        brokers.topics = dict(cluster.topics)
        self._topics = sorted(n for n in cluster.topics if n.startswith(_TOPICS))
        self.mirrors = schedule.seed % 2 == 1 and not schedule.ddl
        self.scattered = self.mirrors and world.random.random() < _SCATTERED
        if self.scattered:
            for name in self._topics:
                spread = scattered(cluster.topics[name], world.random)
                brokers.topics[name] = spread or cluster.topics[name]
        self.coordinator = Coordinator(Log(world, brokers, self._topics))
        self.target = SimTarget(world)
        self.retention = Retention(self.coordinator.log, self.target, _GROUP)
        self._wanted = wanted
        self._steps = schedule.members
        self.all: list[Member] = []
        self._strikes: dict[str, int] = {}  # after so many calls
        self._stopping = self._ending = self._over = False
        world.nemesis = self._strike

    def run(self) -> int:
        """Read all, and see that each op took effect once; give a digest."""
        if not self._topics:
            return 0
        world = self.world
        with taken_over(world, self.coordinator, self.target, self._joined):
            try:
                self._run()
            finally:
                world.finish()
        self._check()
        return world.digest

    def _run(self) -> None:
        world = self.world
        self._join()
        last = 0.0
        for at, what in self._steps:
            world.at(at, lambda what=what: self._do(what))  # type: ignore[misc]
            last = max(last, at)
        self._grow()
        world.at(last + _REST_S, self._rest)
        world.wait(lambda: self._over)

    def _grow(self) -> None:
        if self.coordinator.log.grow():
            self.world.at(self.world.random.choice(_GROWS_S), self._grow)

    # lives

    def _join(self) -> None:
        if sum(one.wanted for one in self.all) < _MOST and not self._stopping:
            name = f"member {len(self.all)}"
            self.all.append(Member(name, process_in(self.world, name)))
            self._start(self.all[-1])

    def _start(self, member: Member) -> None:
        if self._stopping:
            return
        world = self.world
        process = member.process = process_in(world, member.name)
        draw = world.random
        keeps = draw.choice((None, True))

        def run() -> None:
            app: Any = Effects()
            if self.mirrors:
                app = PostgresMirror(_DSN, row_positions=keeps)
            made = member.consumer = IdempotentConsumer(
                app,
                _DSN,
                group=_GROUP,
                topics=self._topics,
                kafka={"bootstrap.servers": "localhost:9092"},
                connections=2,
                batch=4,
            )
            try:
                if not self._stopping:
                    made.run()
            except Exception as error:  # noqa: BLE001 - none is curable by waiting
                self._ended(member, error)
            finally:
                process.dead = True

        world.note(f"start {member.name}")
        world.spawn(process, run)

    def _ended(self, member: Member, error: Exception) -> None:
        """Let the group end where one of it had to stop."""
        self.world.note(f"{member.name} stopped")
        if not self.retention.meet(error):
            Violation(f"{member.name} stopped: {error!r}")
        elif not self._stopping:
            self._stopping = True
            self.world.at(0.0, self._stop)

    def _joined(self, client: SimConsumer) -> None:
        for member in self.all:
            if member.process is client.owner:
                member.client = client

    def _kill(self, member: Member) -> None:
        world, process = self.world, member.process
        if process.dead:
            return
        process.dead = True
        world.note(f"killed {member.name}")
        self.target.lose(process)
        if client := member.client:
            world.at(SESSION_S, lambda: self.coordinator.expel(client))
        world.at(world.random.choice((0.05, 2.0, 60.0)), lambda: self._start(member))

    def _freeze(self, member: Member) -> None:
        world, process = self.world, member.process
        seconds = world.random.choice(_FREEZES)
        if process.dead or process.frozen_until > world.now:
            return
        world.note(f"freeze {member.name} {seconds}")
        process.frozen_until = world.now + seconds
        if seconds > SESSION_S and (client := member.client):
            world.at(SESSION_S, lambda: self.coordinator.expel(client))

    @property
    def _any(self) -> Member:
        alive = [one for one in self.all if not one.process.dead]
        return self.world.random.choice(alive or self.all)

    def _strike(self, _name: str) -> None:
        """Meet a call of a port."""
        world, process = self.world, self.world.owner
        if process is None:
            return
        for what in [*self._strikes]:
            self._strikes[what] -= 1
            if self._strikes[what] >= 0:
                continue
            del self._strikes[what]
            member = next(one for one in self.all if one.process is process)
            if what == "kill":
                self._kill(member)
                raise Killed
            self._freeze(member)
        if process.frozen_until > world.now:
            world.wait(lambda: False, process.frozen_until - world.now)

    # what happens

    def _do(self, what: str) -> None:
        self.world.note(what)
        _STEPS[what](self)

    def join(self) -> None:
        self._join()

    def leave(self) -> None:
        member = self._any
        if member.consumer is not None and sum(one.wanted for one in self.all) > 1:
            member.wanted = False
            self.world.at(0.0, member.consumer.stop, member.process)

    def kill_at_a_call(self) -> None:
        self._strikes["kill"] = self.world.random.choice((1, 5, 30, 200))

    def freeze_at_a_call(self) -> None:
        self._strikes["freeze"] = self.world.random.choice((1, 5, 30, 200))

    def expel(self) -> None:
        """Have the brokers lose a member, which works on meanwhile."""
        if client := self._any.client:
            self.coordinator.expel(client)

    def end_sessions(self) -> None:
        for backend in [*self.target.backends]:
            self.target.terminate(backend.pid)

    def away(self) -> None:
        until = self.world.now + self.world.random.choice((0.5, 10.0))
        self.coordinator.away_until = self.coordinator.log.cluster.away_until = until

    def cut(self) -> None:
        self.target.cuts += 3

    # the end

    def _rest(self) -> None:
        if self._stopping:
            return
        self._strikes.clear()
        self.target.cuts = 0
        self.target.down_until = 0.0
        self.coordinator.log.grow_whole()
        if not any(one.wanted for one in self.all):
            self._join()
        self.world.watch(
            lambda: self._stopping or not self._left(),
            self._stop,
            _LIVE_WITHIN_S,
            lambda: f"the group has not read {self._left()}",
        )

    def _left(self) -> list[str]:
        """Name the partitions that are not read to their ends.

        Who comes back late may note an offset below, of what is passed over.
        """
        rows = self.target.relation("state").committed()
        log, offsets = self.coordinator.log, self.coordinator.offsets

        def reach(place: Place) -> int:
            noted = (rows.get((_GROUP, *place)) or (0, 0, 0, 0))[3]
            return max(noted or 0, offsets.get(place, 0))

        return [
            str(place)
            for place in log.visible
            if reach(place) < len(log.records(place))
        ]

    def _stop(self) -> None:
        if self._ending:
            return
        self._stopping = self._ending = True
        for one in self.all:
            one.wanted = False
            if one.consumer is not None and not one.process.dead:
                self.world.at(0.0, one.consumer.stop, one.process)
        self.world.watch(
            lambda: all(one.process.dead for one in self.all),
            self._end,
            _LIVE_WITHIN_S,
            lambda: "a member that is to stop does not",
        )

    def _end(self) -> None:
        self._over = True

    def _check(self) -> None:
        for table, rows in ({} if self.retention.gone else self._wanted).items():
            there = self.target.relation(table).committed()
            found = {
                key: {name: row.get(name) for name in rows.get(key, row)}
                for (key,), row in there.items()
            }
            if found != rows:
                raise Violation(
                    f"I11: the target's {table} has {found}, the server {rows}"
                )
        # what comes again behind a first copy that is gone is passed over, and a
        # Truncate that is gone from one partition is no op
        unbegun = self.retention.unbegun
        gone = {
            name for place in unbegun for name in self._ops(place)[: unbegun[place]]
        }
        if self.retention.stops:
            return
        self._check_rows_left(gone)
        if not self.mirrors:
            self._check_effects(gone)

    def _check_effects(self, gone: set[Name | None]) -> None:
        """See that each op of the stream took effect, and once."""
        effects = self.target.relation("effects").committed()
        for place in self.coordinator.log.visible:
            for name in self._ops(place):
                if name and name not in gone and effects.get(name) != 1:
                    raise Violation(
                        f"I11: {name} took effect {effects.get(name)} times"
                    )

    def _check_rows_left(self, gone: set[Name | None]) -> None:
        """See that rows are there whose last Insert was not deleted."""
        last: dict[tuple[str, str], Name] = {}
        for place in self.coordinator.log.visible:
            named = zip(self._ops(place), self._documents(place), strict=True)
            for name, document in named:
                op = document["op"]
                if name and isinstance(op, dict) and (row := op.get("Insert")):
                    of = "public." + document["table_name"], row[0]
                    last[of] = max(name, last.get(of, name), key=lambda one: one[2:])
        for (table, key), name in last.items():
            there = self.target.relation(table).committed()
            wanted = key in self._wanted.get(table, {}) and name not in gone
            if wanted and (key,) not in there:
                raise Violation(f"I11: {table} lost {key} of {name}")

    def _ops(self, place: Place) -> list[Name | None]:
        """Name the ops of a partition's records; None is a row of a snapshot."""
        found: list[Name | None] = []
        for document in self._documents(place):
            part = -1 if document["op"] == "Truncate" else place.partition
            name = place.topic, part, document["lsn"], document["seq_id"]
            found.append(None if document.get("snapshot") else name)
        return found

    def _documents(self, place: Place) -> list[dict[str, Any]]:
        records = self.coordinator.log.records(place)
        return [orjson.loads(record.value or b"{}") for record in records]


_STEPS: Final[dict[str, Callable[[Members], None]]] = {
    "join": Members.join,
    "leave": Members.leave,
    "kill": lambda them: them._kill(them._any),
    "kill at a call": Members.kill_at_a_call,
    "freeze": lambda them: them._freeze(them._any),
    "freeze at a call": Members.freeze_at_a_call,
    "rebalance": lambda them: them.coordinator.assign(),
    "expel": Members.expel,
    "cut": Members.cut,
    "crash": lambda them: them.target.crash(),
    "end sessions": Members.end_sessions,
    "Kafka away": Members.away,
    retention.STEP: lambda them: them.retention.delete(),
}
