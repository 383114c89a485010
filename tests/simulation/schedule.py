"""One schedule: what is written, what goes wrong and when, drawn from a seed."""

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Final

import orjson

from tests.simulation import instance_steps, members, polling, relay_steps, retention
from tests.simulation.ddl import DDL
from tests.simulation.faults import APART, EDITS, FAULTS, TRANSACTION_FAULTS

_ALTERED: Final = 0.25  # share of schedules with changes of the catalog
_FILLED: Final = 0.3  # share of the others that begin with a backfill
_IN_BACKFILL: Final = (60, 160)  # about after so many calls it goes on
_POLLED: Final = 0.1
_SEVERAL: Final = 0.1  # of one source
_READ: Final = 0.03  # by a consumer group
_RETAINED: Final = 0.3  # share of those groups under which records are deleted
_APART: Final = 0.05  # share with a fault that is drawn apart
_TRANSACTIONAL: Final = 0.15
# another limit of a topic, or another history, may be other records
_REPEATS: Final = frozenset({"narrow topic", *EDITS})
TABLES: Final = ("one", "two", "three")


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
    ddl: list[tuple[float, str]] = field(default_factory=list)  # when, and what
    # how many rows tables have before the first start, which sends them
    rows: list[tuple[str, int]] = field(default_factory=list)
    polls: list[tuple[float, str]] = field(default_factory=list)  # of a polled table
    instances: list[tuple[float, str]] = field(default_factory=list)  # of one source
    members: list[tuple[float, str]] = field(default_factory=list)  # of a group
    relays: list[tuple[float, str]] = field(default_factory=list)  # of a group, too
    # if any, delivery is transactional; what happens to Kafka's transactions
    transactions: list[tuple[float, str]] = field(default_factory=list)

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
        if draw.random() < 0.08:
            faults.append((round(draw.uniform(0, span), 4), draw.choice(list(EDITS))))
        apart = random.Random(f"apart {seed}")  # noqa: S311 - likewise
        if apart.random() < _APART:
            at = apart.choice((0.0, apart.uniform(0, span)))  # 0: of the first start
            faults.append((round(at, 4), apart.choice([*APART])))
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
        ddl: list[tuple[float, str]] = []
        if draw.random() < _ALTERED:
            span = max(span, 3.0)
            kinds = draw.sample(list(DDL), draw.randint(1, 2))
            ddl = [
                (round(draw.uniform(0, span), 4), draw.choice(kinds))
                for _ in range(draw.choice((1, 2, 4)))
            ]
        rows: list[tuple[str, int]] = []
        if not (ddl or reads) and draw.random() < _FILLED:
            rows = [(name, draw.choice((1, 3, 6))) for name in TABLES]
            kills = [draw.randint(*_IN_BACKFILL), *kills]
        transactions = _transactions(seed, span)
        return cls(
            seed,
            commits,
            sorted(faults),
            kills,
            freezes,
            sorted(reads),
            sorted(ddl),
            rows,
            _drawn(draw, _POLLED, (3.0, 20.0, 100.0), polling.STEPS),
            _drawn(draw, _SEVERAL, (3.0, 30.0, 200.0), instance_steps.STEPS),
            _retained(seed, _drawn(draw, _READ, (0.5, 3.0, 20.0), members.STEPS)),
            _drawn(draw, _READ, (0.5, 10.0, 60.0), relay_steps.DRAWN),
            transactions,
        )

    @property
    def skips(self) -> bool:
        """Return whether it has what Kafka has left out: every other one does."""
        return self.seed % 2 == 0

    @property
    def once(self) -> bool:
        """Return whether no record comes twice, whatever is killed."""
        if "leaderless" in {what for _, what in self.transactions}:
            return False  # a copy of a record may commit others
        skips = self.skips or bool(self.transactions)
        return skips and not {what for _, what in self.faults} & _REPEATS

    @property
    def whole(self) -> bool:
        """Return whether the source's transactions are read whole, or not at all."""
        edited = {what for _, what in self.faults} & EDITS.keys()
        return bool(self.transactions) and not (self.ddl or self.freezes or edited)

    def to_json(self) -> str:
        return orjson.dumps(asdict(self)).decode()

    @classmethod
    def from_json(cls, text: str) -> "Schedule":
        found = orjson.loads(text)
        for one in fields(cls):
            if one.name not in {"seed", "kills"}:
                found[one.name] = [tuple(pair) for pair in found.get(one.name, ())]
        return cls(**found)


def _transactions(seed: int, span: float) -> list[tuple[float, str]]:
    """Draw what happens to Kafka's transactions: apart, so that other seeds stay."""
    draw = random.Random(f"transactions {seed}")  # noqa: S311 - repeatable on purpose
    if draw.random() >= _TRANSACTIONAL:
        return []
    steps = [
        (round(draw.uniform(0, span), 4), draw.choice(list(TRANSACTION_FAULTS)))
        for _ in range(draw.choice((0, 1, 3)))
    ]
    return [(0.0, "transactional"), *sorted(steps)]


def _retained(seed: int, steps: list[tuple[float, str]]) -> list[tuple[float, str]]:
    """Draw where records are deleted under a group: apart, so that other seeds stay."""
    draw = random.Random(f"retention {seed}")  # noqa: S311 - repeatable on purpose
    if not steps or draw.random() >= _RETAINED:
        return steps
    count, span = draw.choice((1, 1, 3)), steps[-1][0]
    deleted = [(round(draw.uniform(0, span), 4), retention.STEP) for _ in range(count)]
    return sorted(steps + deleted)


def _drawn(
    draw: random.Random, share: float, spans: Sequence[float], steps: Sequence[str]
) -> list[tuple[float, str]]:
    """Draw what happens in a world of its own; mostly nothing."""
    if draw.random() >= share:
        return []
    span, count = draw.choice(spans), draw.choice((4, 10, 25))
    return sorted(
        (round(draw.uniform(0, span), 4), draw.choice(steps)) for _ in range(count)
    )
