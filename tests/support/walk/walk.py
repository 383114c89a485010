"""Draws a walk from a seed, does it, and says how to do it again when it fails."""

# ruff: noqa: S311 - random by a seed that repeats a failure

import random
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

import psycopg

from tests.support.fixtures.kafka import KafkaServer
from tests.support.fixtures.postgres import PostgresServer
from tests.support.walk.act import Act, Kind
from tests.support.walk.changes import ROLE, World, creation
from tests.support.walk.compounds import Compounds
from tests.support.walk.runner import Made, Runner, WalkFailed
from tests.support.walk.shrinker import shrunk
from tests.support.walk.tables import BY_CODE, REGIONS, TYPES, WRITERS, Table, write

MODES: Final = ("patterns", "listed", "schema", "all")
_STEPS: Final = 300  # of one database
_CHECK_EVERY: Final = 25
_SHOWN: Final = 60


@dataclass(frozen=True)
class Budget:
    """How far a walk goes: to whichever end comes first."""

    until: float  # of time.monotonic()
    steps: int = 10**9
    shrink_s: float = 0.0  # what making a failure shorter may take
    without: frozenset[str] = frozenset()  # kinds of changes that are left out
    hole: str = ""  # the mend that is taken out, of `patching`
    reread: bool = False  # on_publication_change = "reread"


@dataclass
class Draw:
    """The steps of one database; they depend on the seed alone."""

    seed: str
    without: frozenset[str] = frozenset()  # kinds of changes that are left out
    reread: bool = False  # on_publication_change = "reread"
    world: World = field(init=False)
    _open: set[int] = field(default_factory=set)
    _up: bool = True

    def __post_init__(self) -> None:
        choose = random.Random(f"{self.seed}/world")
        self.world = World(choose.choice(MODES), ROLE)
        for name in ("alpha", "beta", "gamma", "root", BY_CODE):
            table = Table(name, choose.choice(TYPES))
            if name == "root":
                table.leaves = {region: f"{region}_0" for region in REGIONS}
            self.world.tables.append(table)
        self.world.reread = self.reread

    def setup(self) -> Iterator[str]:
        """Write what is there before walstream."""
        yield "CREATE EXTENSION citext"
        yield "CREATE TABLE ticks (id bigserial PRIMARY KEY)"
        yield f"ALTER TABLE ticks OWNER TO {ROLE}_owner"
        for table in self.world.tables:
            yield table.creation()
            for part in table.parts:
                yield f"ALTER TABLE {part} OWNER TO {ROLE}_owner"
        _, full, index, _, coded = self.world.tables
        for table in (full, coded):
            yield f"ALTER TABLE {table.at} REPLICA IDENTITY FULL"
        yield f"ALTER TABLE {index.at} REPLICA IDENTITY USING INDEX {index.name}_code"
        choose = random.Random(f"{self.seed}/rows")
        for table in self.world.tables * 15:
            yield write(choose, table, choose.randrange(WRITERS))
        if self.world.mode != "patterns":
            yield creation(self.world.mode, self.world.members())

    def steps(self) -> Iterator[list[Act]]:
        """Draw one step after the other, each of one or more acts."""
        for number in range(1, _STEPS + 1):
            choose = random.Random(f"{self.seed}/{number}")
            acts = list(self._step(choose))
            if number % _CHECK_EVERY == 0 or number == _STEPS:
                acts += self._settled()
            yield acts

    def _settled(self) -> Iterator[Act]:
        yield from self._end_all("COMMIT")
        if not self._up:
            self._up = True
            yield Act(Kind.START)
        yield Act(Kind.CHECK)
        for table in self.world.tables:
            table.young = False

    def _end_all(self, how: str) -> Iterator[Act]:
        for session in sorted(self._open):
            yield Act(Kind.ROWS, how, session)
        self._open.clear()

    def _step(self, choose: random.Random) -> Iterator[Act]:
        changes = Compounds(
            self.world, choose, lambda table: self._rows(choose, table), self.without
        )
        dice = choose.random()
        if dice < 0.72:
            yield from self._write(choose)
            return
        if dice < 0.735:
            yield from self._end_all(choose.choice(["COMMIT", "ROLLBACK"]))
            tables = choose.sample(self.world.tables, choose.choice([1, 1, 2]))
            names = ", ".join(table.at for table in tables)
            yield Act(Kind.ROWS, f"TRUNCATE {names}")
            return
        if dice < 0.77:
            if self._up:
                yield Act(choose.choice([Kind.STOP, Kind.KILL]))
            else:
                yield Act(Kind.START)
            self._up = not self._up
            return
        yield from self._end_all(choose.choice(["COMMIT", "ROLLBACK"]))
        kind = choose.choices(
            ("schema", "migration", "publication", "compound", "harmless", "rights"),
            (13, 2, 2, 12, 2, 2),
        )[0]
        if kind not in self.without:
            yield from getattr(changes, kind)()

    def _rows(self, choose: random.Random, table: Table) -> Iterator[Act]:
        for _ in range(choose.randint(1, 6)):
            yield Act(Kind.ROWS, write(choose, table, choose.randrange(WRITERS)))

    def _write(self, choose: random.Random) -> Iterator[Act]:
        """Write in one of several sessions, with what belongs to transactions."""
        session = choose.randrange(WRITERS)
        dice = choose.random()
        if session not in self._open and dice < 0.4:
            self._open.add(session)
            yield Act(Kind.ROWS, "BEGIN", session)
        elif session in self._open and dice < 0.3:
            self._open.discard(session)
            yield Act(Kind.ROWS, "COMMIT" if dice < 0.22 else "ROLLBACK", session)
            return
        within = session in self._open and dice > 0.8
        if within:
            yield Act(Kind.ROWS, "SAVEPOINT one", session)
        for _ in range(choose.randint(1, 5)):
            statement = write(choose, choose.choice(self.world.tables), session)
            yield Act(Kind.ROWS, statement, session)
        if within:
            how = choose.choice(["ROLLBACK TO one", "ROLLBACK TO one", "RELEASE one"])
            yield Act(Kind.ROWS, how, session)


def walk(  # noqa: PLR0913 - what a walk is made of
    server: PostgresServer,
    kafka: KafkaServer,
    folder: Path,
    *,
    seed: str,
    budget: Budget,
    counters: dict[str, int],
) -> int:
    """Walk one database's steps, or fewer where the budget ends; give how many.

    A walk that fails is made short, as far as `budget.shrink_s` allows.
    """
    draw = Draw(seed, budget.without, budget.reread)
    setup = list(draw.setup())  # now: what is drawn changes the tables it is made of
    steps: list[list[Act]] = []
    made = Made(draw.world.mode, setup, reread=draw.world.reread, hole=budget.hole)
    runner = Runner(server, kafka, folder, made)
    failed = _play(runner, _within(draw.steps(), budget), steps)
    for what, count in runner.counters.items():
        counters[what] = counters.get(what, 0) + count
    if failed is None:
        return len(steps)

    def again(some: list[list[Act]]) -> bool:
        number = sum(1 for _ in folder.glob("again*"))
        other = Runner(server, kafka, folder / f"again{number}", made)
        try:
            failed_so = _play(other, iter(some), [])
        except psycopg.errors.LockNotAvailable:
            return False  # the end of a transaction is left out
        return failed_so is not None and failed_so.what == failed.what

    short = shrunk(steps, again, budget.shrink_s)
    script = folder / "acts.txt"
    script.write_text("\n".join(_lines(steps)) + "\n", "utf-8")
    mode = f"{draw.world.mode}{', reread' * draw.world.reread}"
    told = (
        f"PostgreSQL {server.version}, seed {seed}, step {len(steps)}, publication"
        f" {mode}\n{failed}\nAll acts are in {script}, the short form of"
        " them:\n" + "\n".join(line[:240] for line in _lines(short)[-_SHOWN:])
    )
    raise WalkFailed(
        failed.what, f"{told}\nAgain: WALSTREAM_TEST_WALK_SEED={seed}", len(steps)
    )


def _within(steps: Iterator[list[Act]], budget: Budget) -> Iterator[list[Act]]:
    for number, acts in enumerate(steps, 1):
        yield acts
        if number >= budget.steps or time.monotonic() > budget.until:
            return


def _play(
    runner: Runner, steps: Iterator[list[Act]], done: list[list[Act]]
) -> WalkFailed | None:
    """Do the steps and what every walk ends with; give the failure, if there is one."""
    last = [Act(Kind.START), Act(Kind.CHECK), Act(Kind.STOP)]
    with runner:
        try:
            for acts in chain(steps, [last]):
                done.append(acts)
                for act in acts:
                    runner.do(act)
        except WalkFailed as failed:
            return failed
    return None


def _lines(steps: list[list[Act]]) -> list[str]:
    return [
        f"{number:>4} {act}" for number, acts in enumerate(steps, 1) for act in acts
    ]
