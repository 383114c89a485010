"""A table that is polled: keys are drawn before they commit, in another order.

The real poller, its progress on the simulated disk and its marks; what they ask of the
database comes here, and time passes between two of its questions, as between its reads.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from tests.simulation.disk import SimDisk
from tests.simulation.host import process_in
from tests.simulation.world import Killed, Violation, World
from walstream.errors import Transient
from walstream.sources.sql.database.low_watermark import Mark, Marks
from walstream.sources.sql.database.open_transactions import Open
from walstream.sources.sql.intervals import missing
from walstream.sources.sql.poller import Poller, PollingRules
from walstream.sources.sql.progress import GapBounds, TableProgress
from walstream.sources.sql.task import Ahead, Range, RangeDone
from walstream.spark.outcome import ChunkDone
from walstream.state.store import LmdbStore

if TYPE_CHECKING:
    from tests.simulation.schedule import Schedule

_FOLDER: Final = Path("/nowhere/state/polled")
_TIMEOUT_S: Final = 60.0
_EVERY_S: Final = 2.0
_REST_S: Final = 400.0
_PAUSES: Final = (0.0, 0.0, 0.0005, 0.02, 0.7)  # s
_LENGTHS: Final = (
    0.01,
    0.5,
    5.0,
    30.0,
    150.0,
)  # s: of transactions
STEPS: Final = ("insert", "insert", "insert", "roll back", "kill", "refuse")


@dataclass
class PolledTable:
    """Keys of a sequence, by transactions that are open or have ended."""

    world: World
    committed: set[int] = field(default_factory=set)
    open: dict[int, list[int]] = field(default_factory=dict)
    next_key: int = 1
    begun: int = 0
    sent: Counter[int] = field(default_factory=Counter)

    def begin(self, *, commits: bool) -> None:
        """Draw keys now, and end later."""
        draw = self.world.random
        self.begun += 1
        number, keys = self.begun, []
        for _ in range(draw.choice((1, 1, 2, 5))):
            keys.append(self.next_key)
            self.next_key += draw.choice((1, 1, 1, 3))  # others rolled back at once
        self.open[number] = keys

        def end() -> None:
            if commits:
                self.committed.update(self.open[number])
            del self.open[number]

        self.world.at(draw.choice(_LENGTHS), end)


class SimLook:
    """A connection to it, as `TableLook`."""

    def __init__(self, table: PolledTable, marks: Marks) -> None:
        self._table = table
        self._marks = marks

    def _ask(self) -> list[int]:
        world = self._table.world
        world.port("poll query")
        world.wait(lambda: False, world.random.choice(_PAUSES))
        return sorted(self._table.committed)

    def mark(self) -> Mark | None:
        self._ask()
        return self._marks.look(cast("Any", self._table))

    def newest(self) -> int | None:
        return max(self._ask(), default=None)

    def oldest(self) -> int | None:
        return min(self._ask(), default=None)

    def next_key(self) -> int | None:
        self._ask()
        return self._table.next_key

    def is_replica(self) -> bool:
        return False

    def origin(self) -> str:
        return "1"

    def ahead(self, after: int, rows: int) -> int | None:
        keys = [key for key in self._ask() if key > after][:rows]
        return keys[-1] if keys else None

    def cuts(self, _low: int, _high: int, _parts: int) -> Sequence[int]:
        return []

    def present(self, intervals: Sequence[tuple[int, int]], most: int) -> Sequence[int]:
        keys = self._ask()
        return [k for k in keys if any(a <= k <= b for a, b in intervals)][:most]


def open_now(table: PolledTable, _shape: object) -> Open:
    """List the transactions that may have drawn a key."""
    return Open(frozenset(f"t{number}" for number in table.open))


class Polling:
    """A worker that polls it, through kills and refusals, in a world of its own."""

    def __init__(self, schedule: "Schedule") -> None:
        self._world = world = World(schedule.seed)
        self.disk = SimDisk(world)
        self._schedule = schedule
        self._table = PolledTable(world)
        self._refusals = 0
        self._kill_after = -1  # calls of ports
        self._killed = False
        self._over = 0.0

    def run(self) -> int:
        """Run the transactions, and see that each row came; give a digest."""
        world = self._world
        world.nemesis = self._strike
        last = 0.0
        for at, what in self._schedule.polls:
            world.at(at, lambda what=what: self._do(what))  # type: ignore[misc]
            last = max(last, at)
        self._over = world.now + last + _REST_S
        while world.now < self._over:
            self._live()
        self._check()
        self._world.note(f"{sorted(self._table.sent.items())}")
        return self._world.digest

    def _do(self, what: str) -> None:
        self._world.note(what)
        if what == "kill":
            self._kill_after = self._world.random.choice((1, 3, 10))
        elif what == "refuse":
            self._refusals += 1
        else:
            self._table.begin(commits=what == "insert")

    def _strike(self, _name: str) -> None:
        if self._kill_after >= 0:
            self._kill_after -= 1
            if self._kill_after < 0 and self._world.owner is not None:
                self._world.owner.dead = self._killed = True
                raise Killed

    def _live(self) -> None:
        process = process_in(self._world)
        with self._world.owned(process):
            try:
                with LmdbStore(_FOLDER) as positions:
                    self._poll(positions)
            except Killed:
                if Violation.first:
                    raise
            finally:
                process.dead = True

    def _poll(self, positions: LmdbStore) -> None:
        marks = Marks(cast("Any", None))

        @contextmanager
        def connect() -> Iterator[SimLook]:
            yield SimLook(self._table, marks)

        limit = self._schedule.seed % 3 * 2  # rows of a poll; 0: all
        progress = TableProgress(positions, "t", GapBounds(_TIMEOUT_S, 1000))
        rules = PollingRules("t", limit=limit)
        poller = Poller(rules, progress, connect, self._read)
        while self._world.now < self._over:
            try:
                poller.poll()
            except Transient:
                # as its thread does: what is stored counts
                progress = TableProgress(positions, "t", GapBounds(_TIMEOUT_S, 1000))
                poller = Poller(rules, progress, connect, self._read)
            self._world.sleep(_EVERY_S)

    def _read(
        self, parts: Sequence[Range], on_done: Callable[[ChunkDone], None]
    ) -> bool:
        """Read and send ranges, as tasks do; each sees what is committed then."""
        for part in parts:
            self._world.port("read a range")
            self._world.wait(lambda: False, self._world.random.choice(_PAUSES))
            on_done(self._range(part))
        return True

    def _range(self, part: Range) -> RangeDone:
        span, there = part.span, sorted(self._table.committed)
        if isinstance(span, Ahead):
            keys = [key for key in there if span.low < key <= span.high]
            keys = keys if span.limit is None else keys[: span.limit]
            whole = span.limit is None or len(keys) < span.limit
            reached = span.high if whole else keys[-1]
            gaps = tuple(missing(span.low, reached, keys))
            done = RangeDone(part.number, len(keys), 0, reached=reached, missing=gaps)
        else:
            keys = [key for key in span.keys if key in self._table.committed]
            done = RangeDone(part.number, len(keys), 0, keys=tuple(keys))
        for key in keys:
            self._world.port("send a row")
            self._table.sent[key] += 1
            if self._refusals:
                self._refusals -= 1
                self._killed = True  # what was sent comes again
                raise Transient("delivering: the record was given up")
        return done

    def _check(self) -> None:
        table = self._table
        if lost := table.committed - table.sent.keys():
            raise Violation(f"polling: rows {sorted(lost)} were never sent")
        if strange := table.sent.keys() - table.committed:
            raise Violation(f"polling: rows {sorted(strange)} were never committed")
        twice = sorted(key for key, times in table.sent.items() if times > 1)
        if twice and not self._killed:
            raise Violation(f"polling: rows {twice} were sent twice for no reason")
